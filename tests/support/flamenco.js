// What Flamenco's manager gives to the script of a job type: `author`, `path`, `print` and a job. It reads the script's
// path and the settings of a job from the command line, and prints the settings that the type has and the job's tasks.
// https://flamenco.blender.org/usage/job-types/

const fs = require("fs");
const vm = require("vm");

const [script, settings] = process.argv.slice(2);

function required(name, value) {
    if (typeof value !== "string" || !value.trim()) {
        throw new Error(`author.Task(name, type): ${name} is required`);
    }
    return value.trim();
}

const author = {
    Task(name, type) {
        const task = { name: required("name", name), type: required("type", type), commands: [], dependencies: [] };
        return {
            task,
            addCommand(command) { task.commands.push(command); },
            addDependency(other) { task.dependencies.push(other.task.name); },
        };
    },
    Command(name, parameters) { return { name, parameters }; },
};
// Paths of any system, with a slash between their parts.
const path = {
    basename: whole => whole.split(/[\\/]/).pop(),
    dirname: whole => whole.replace(/[\\/][^\\/]*$/, ""),
    join: (...parts) => parts.join("/").replace(/\/+/g, "/"),
    stem: whole => path.basename(whole).replace(/(?!^)\.[^.]*$/, ""),
};

const tasks = [];
const job = { name: "Job", settings: JSON.parse(settings), addTask(added) { tasks.push(added.task); } };
const source = `${fs.readFileSync(script, "utf8")}\n;({ JOB_TYPE, compileJob })`;
const { JOB_TYPE, compileJob } = vm.runInNewContext(source, { author, path, print() {} });
try {
    compileJob(job);
    console.log(JSON.stringify({ type: JOB_TYPE, tasks }));
} catch (trouble) {
    console.log(JSON.stringify({ type: JOB_TYPE, refused: String(trouble) }));
}
