package pipeline

/** Where commands run: this container, or a container of an agent's pod. */
class Agent {
    protected final Run run
    final String workspace
    String name = 'master'

    Agent(Run run, String workspace) {
        this.run = run
        this.workspace = workspace
    }

    /** Returns the command line that runs a command in a directory, which it creates. */
    protected List<String> commandLine(List<String> command, String dir, Map<String, String> env) {
        ['sh', '-c', 'mkdir -p "$0" && cd "$0" && exec "$@"', dir] + command
    }

    /** Starts a command with the variables of the current frame. */
    Process start(List<String> command, boolean mergeOutput) {
        Frame frame = Frame.current()
        Map<String, String> env = variables(frame)
        def builder = new ProcessBuilder(commandLine(command, frame.dir ?: workspace, env))
        builder.environment().remove('BUILD')
        builder.environment().putAll(env)
        builder.redirectErrorStream(mergeOutput)
        builder.start()
    }

    protected Map<String, String> variables(Frame frame) {
        Map<String, String> all = [:]
        synchronized (run.env) { all.putAll(run.env) }
        all.putAll(frame.env)
        all + [WORKSPACE: workspace, NODE_NAME: name, STAGE_NAME: frame.stage?.name ?: '']
    }

    /** Runs a command without a log, and returns its output. Throws a Failure with its error output. */
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
            def reader = process.consumeProcessErrorStream(errors)
            def writer = Thread.startDaemon { try { process.outputStream.withStream { o -> if (input) o << input } } catch (IOException ignored) { } }
            output << process.inputStream
            int code = process.waitFor()
            [reader, writer]*.join()
            if (code != 0) throw new Failure(errors.toString('UTF-8').trim() ?: "${command[0]} has ended with code $code")
        }
    }

    /** Is called when the block of the node ends. */
    void close() { }
}
