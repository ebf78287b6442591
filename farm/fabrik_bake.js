// SPDX-License-Identifier: GPL-3.0-or-later
//
// A job type for Flamenco, Blender's render farm: many recordings onto one rig, one task each. Put this file in the
// folder `scripts` beside flamenco-manager. All workers need the extension switched on, and see the files at the same
// paths. docs/guide/batches.md says more.

const JOB_TYPE = {
    label: "FABRIK Bake",
    description: "Bake recordings of markers, or motions of armatures, onto a rig: keyframes in a new .blend for each",
    settings: [
        { key: "command", type: "string", choices: ["bake", "retarget"], default: "bake", required: true,
          description: "What the recordings are: markers to bake, or armatures to retarget" },
        { key: "blendfile", type: "string", required: true, visible: "web",
          description: "The .blend with the rig" },
        { key: "folder", type: "string", subtype: "dir_path", required: true, visible: "submission",
          description: "Folder with the recordings" },
        { key: "pattern", type: "string", default: "*.c3d", visible: "submission",
          description: "Which files of the folder are recordings, such as *.c3d, *.trc, *.bvh or *.fbx" },
        { key: "takes", type: "string", required: true, editable: false,
          eval: "';'.join(sorted(str(p) for p in abspath(settings.folder).glob(settings.pattern)))",
          evalInfo: { showLinkButton: true, description: "All files of the folder that the pattern fits" },
          description: "The recordings, with ; between them" },
        { key: "output", type: "string", subtype: "dir_path", required: true,
          description: "Folder for the baked .blend files and their reports" },
        { key: "map", type: "string", subtype: "file_path", required: false,
          description: "Marker map or bone map; without one labels or names tell which bone is which" },
        { key: "armature", type: "string", required: false,
          description: "The armature object, if the .blend has several" },
        { key: "strict", type: "bool", default: false,
          description: "Count a take with warnings as failed" },
        { key: "options", type: "string", required: false,
          description: "More options of the command, separated by spaces, such as --plant-feet --scale auto" },
    ]
};

function compileJob(job) {
    const settings = job.settings;
    const takes = settings.takes.split(";").map(take => take.trim()).filter(take => take);
    if (!takes.length) {
        throw "There are no recordings: choose a folder and a pattern";
    }
    const stems = takes.map(take => path.stem(take));
    const twice = stems.find((stem, place) => stems.indexOf(stem) !== place);
    if (twice !== undefined) {
        throw `Two recordings are called ${twice}, as their files would be: give one another name`;
    }
    takes.forEach(take => job.addTask(bakeTask(settings, take)));
}

// One recording. The command makes the folder, and calls the .blend and the report as the recording.
function bakeTask(settings, take) {
    const task = author.Task(path.stem(take), "blender");
    const folder = `${settings.output.replace(/[\\/]+$/, "")}/`;
    task.addCommand(author.Command("exec", {
        exe: "{blender}",
        args: [
            "--command", `fabrik_${settings.command}`, settings.blendfile, take, "--output", folder, "--report", folder,
        ].concat(
            settings.map ? ["--map", settings.map] : [],
            settings.armature ? ["--armature", settings.armature] : [],
            settings.strict ? ["--strict"] : [],
            (settings.options || "").split(" ").filter(option => option),
        ),
    }));
    return task;
}
