// SPDX-License-Identifier: GPL-3.0-or-later
//
// A job type for Flamenco, Blender's render farm: bakes many recordings onto one rig, with one task for each. Put this
// file into the folder `scripts` next to flamenco-manager. All workers need the extension enabled, and the files at the
// same paths. See docs/guide/batches.md.

const JOB_TYPE = {
    label: "FABRIK Bake",
    description: "Bake mocap recordings, or retarget motions, onto a rig. Each result is a new .blend file with keyframes",
    settings: [
        { key: "command", type: "string", choices: ["bake", "retarget"], default: "bake", required: true,
          description: "bake: the recordings are markers. retarget: the recordings are motions of armatures" },
        { key: "blendfile", type: "string", required: true, visible: "web",
          description: "The .blend file with the rig" },
        { key: "folder", type: "string", subtype: "dir_path", required: true, visible: "submission",
          description: "Folder with the recordings" },
        { key: "pattern", type: "string", default: "*.c3d", visible: "submission",
          description: "Pattern for the names of the recordings, such as *.c3d, *.trc, *.bvh or *.fbx" },
        { key: "takes", type: "string", required: true, editable: false,
          eval: "';'.join(sorted(str(p) for p in abspath(settings.folder).glob(settings.pattern)))",
          evalInfo: { showLinkButton: true, description: "All files in the folder that match the pattern" },
          description: "The recordings, separated by ;" },
        { key: "output", type: "string", subtype: "dir_path", required: true,
          description: "Folder for the baked .blend files and their reports" },
        { key: "map", type: "string", subtype: "file_path", required: false,
          description: "Marker map or bone map. Without it, markers or bones are matched by name" },
        { key: "armature", type: "string", required: false,
          description: "The armature object, if the .blend file has several" },
        { key: "strict", type: "bool", default: false,
          description: "Count takes with warnings as failed" },
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
        throw `Two recordings are named ${twice}, so their files would have the same name: rename one of them`;
    }
    takes.forEach(take => job.addTask(bakeTask(settings, take)));
}

// One recording. The command creates the folder, and names the .blend file and the report after the recording.
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
