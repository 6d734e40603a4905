package pipeline

import groovy.json.JsonOutput
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions

/** An oc command. It runs in the pipeline's pod, even if its files are in an agent's pod. */
class Command {
    /** The maximum number of output characters in a command's result. */
    private static final int LIMIT = 1 << 20
    private static final List<String> FILES = ['-f', '--filename', '--from-file', '--from-dir', '--from-archive', '--from-repo', '--from-env-file', '--param-file', '-k', '--kustomize']
    private final Run run
    private final List<String> words
    private final String input
    private final boolean toLog

    Command(Run run, List<String> words, String input, boolean toLog) {
        this.run = run
        this.words = words
        this.input = input
        this.toLog = toLog
    }

    /**
     * Returns verb, cmd, out, err and status. If an earlier runner has run the command, returns the
     * recorded result.
     */
    Map run(String verb) {
        (Map) run.steps.leaf('openshift') {
            run.steps.say0("openshift.$verb")
            File scratch = Files.createTempDirectory(run.work.toPath(), 'oc', PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString('rwx------'))).toFile()
            try {
                return [verb: verb, cmd: (['oc'] + words).join(' ')] + execute(scratch)
            } finally {
                scratch.deleteDir()
            }
        }
    }

    private Map execute(File scratch) {
        Frame frame = Frame.current()
        Map<String, String> env = new LinkedHashMap<String, String>(frame.env)
        if (frame.token || frame.cluster) {
            File file = new File(scratch, 'kubeconfig')
            configure(file, OpenShift.access(frame.cluster, frame.token))
            env.KUBECONFIG = file.path
        }
        File files = new File(scratch, 'files')
        List<String> local = frame.agent instanceof PodAgent ? fetch(frame.agent, files) : words
        Frame inner = frame.child('', [env: env] + (files.directory ? [dir: files.path] : [:]))
        (Map) inner.run { start(['oc'] + local) }
    }

    private Map start(List<String> line) {
        Process process = run.local.start(line, false)
        def errors = new ByteArrayOutputStream(), output = new StringBuilder()
        int status = (int) Frame.current().scope.guard(process) {
            Agent.exchange(process, input ? new ByteArrayInputStream(input.getBytes('UTF-8')) : null, errors) {
                if (toLog) process.inputStream.newReader('UTF-8').eachLine { run.log.println(it); if (output.length() < LIMIT) output << it << '\n' }
                else output << process.inputStream.getText('UTF-8')
            }
        }
        [out: output.toString(), err: errors.toString('UTF-8'), status: status]
    }

    /**
     * Copies the files that the command reads from an agent, and returns the command with the
     * copies' paths.
     */
    private List<String> fetch(Agent agent, File into) {
        List<String> result = new ArrayList<String>(words)
        for (int i = 0; i < words.size() && words[i] != '--'; i++) {
            int at = words[i].indexOf('=')
            String option = at < 0 ? words[i] : words[i].substring(0, at)
            int place = at < 0 ? i + 1 : i
            if (!FILES.contains(option) || place >= words.size()) continue
            String path = (at < 0 ? words[place] : words[i].substring(at + 1)).replaceFirst(/^[A-Za-z0-9._-]+=(?=.)/, '')
            // In logs, -f does not specify a file. URLs and standard input are not copied.
            if (path == '-' || path.contains('://') || words.contains('logs')) continue
            into.mkdirs()
            File archive = new File(into.parentFile, 'archive.tar')
            archive.withOutputStream { agent.pipe(['tar', '-cf', '-', '--', path], null, it) }
            run.local.output(['tar', '-xf', archive.path, '-C', into.path])
            archive.delete()
            if (path.startsWith('/')) result[place] = words[place].replace(path, into.path + path)
        }
        into.directory ? result : words
    }

    private static void configure(File file, Map access) {
        file.text = JsonOutput.toJson([apiVersion: 'v1', kind: 'Config', 'current-context': 'pipeline',
            clusters: [[name: 'pipeline', cluster: access.cluster]], users: [[name: 'pipeline', user: access.user]],
            contexts: [[name: 'pipeline', context: [cluster: 'pipeline', user: 'pipeline']]]])
    }
}
