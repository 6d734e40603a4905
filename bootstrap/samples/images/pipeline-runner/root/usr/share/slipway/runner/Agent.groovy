package pipeline

import groovy.transform.CompileStatic

/** An agent is the place where commands run: this container, or a container of an agent's pod. */
@CompileStatic
class Agent {
    static final String NAME = '''id -un >/dev/null 2>&1 && exit; line="pipeline:x:$(id -u):0::${HOME:-/}:/bin/sh"
        if test -w /etc/passwd; then echo "$line" >>/etc/passwd; exit; fi
        for library in /usr/lib/*/libnss_wrapper.so; do
            if test -e "$library" && { cat /etc/passwd && echo "$line"; } >passwd; then
                printf '%s\\n' "LD_PRELOAD=$library" "NSS_WRAPPER_PASSWD=$PWD/passwd" NSS_WRAPPER_GROUP=/etc/group
            fi
        done'''
    protected final Run run
    final String workspace
    String name = 'master'

    Agent(Run run, String workspace) {
        this.run = run
        this.workspace = workspace
    }

    /** Starts a command in the current frame's directory, with the frame's variables. */
    Process start(List<String> command, boolean mergeOutput) {
        Frame frame = Frame.current()
        // An agent's directory does not exist in this container.
        String dir = frame.agent instanceof PodAgent && frame.dir?.startsWith(PodAgent.DIRECTORY) ? workspace : frame.dir ?: workspace
        def builder = new ProcessBuilder(['sh', '-c', 'mkdir -p "$0" && cd "$0" && exec "$@"', dir] + command)
        builder.environment().remove('BUILD')
        builder.environment().putAll(variables(frame))
        builder.redirectErrorStream(mergeOutput)
        builder.start()
    }

    protected Map<String, String> variables(Frame frame) {
        Map<String, String> all = [:]
        synchronized (run.env) { all.putAll(run.env) }
        all.putAll(frame.env)
        all + [WORKSPACE: workspace, NODE_NAME: name, STAGE_NAME: frame.stage?.name ?: '']
    }

    /**
     * Runs a command without logging, and returns its output. If the command fails, throws a
     * Failure that contains its error output.
     */
    String output(List<String> command, byte[] input = null) {
        def bytes = new ByteArrayOutputStream()
        pipe(command, input ? new ByteArrayInputStream(input) : null, bytes)
        bytes.toString('UTF-8')
    }

    /** Runs a command that reads and writes streams. */
    void pipe(List<String> command, InputStream input, OutputStream output) {
        Process process = start(command, false)
        def errors = new ByteArrayOutputStream()
        Frame.current().scope.guard(process) {
            int code = exchange(process, input, errors) { output << process.inputStream }
            if (code != 0) throw new Failure(errors.toString('UTF-8').trim() ?: "${command[0]} has ended with code $code".toString())
        }
    }

    /** Writes a process's input while a closure reads its output. Returns the exit code. */
    static int exchange(Process process, InputStream input, OutputStream errors, Closure read) {
        def reader = process.consumeProcessErrorStream(errors)
        def writer = Thread.startDaemon { try { process.outputStream.withStream { o -> if (input) o << input } } catch (IOException ignored) { } }
        read()
        int code = process.waitFor()
        [reader, writer]*.join()
        code
    }

    /**
     * Stores a secret in a file outside the workspace, and returns the file's path. The caller
     * removes the file.
     */
    String store(String content) {
        beside { output(['sh', '-c', 'umask 077 && f=$(mktemp "$PWD/credentials.XXXXXX") && cat >"$f" && echo "$f"'], content.getBytes('UTF-8')).trim() }
    }

    void forget(List<String> files) { beside { output(['rm', '-f', '--'] + files) } }

    /**
     * Gives the container's user a name, because ssh requires one. The cluster chooses the user's
     * ID. If /etc/passwd is not writable, returns variables that make libnss_wrapper read the name
     * from another file, if the image contains this library.
     */
    Map<String, String> nameUser() {
        String text = beside { output(['sh', '-c', NAME]) }
        text.readLines().collectEntries { String line -> line.split('=', 2) as List }
    }

    /**
     * Runs a body in the directory for temporary files, which is next to the workspace. Nothing
     * interrupts the body.
     */
    protected beside(Closure body) { Frame.current().child('', [dir: "${workspace}@tmp".toString(), scope: new Scope(null)]).run(body) }

    /** Called when the node block ends. */
    void close() { }
}
