package pipeline

/** Steps that run commands, and the block that chooses the agent. */
trait CommandSteps {
    abstract Run getRun()

    abstract leaf(String kind, Closure body)

    abstract block(String kind, Map changes, Closure body)

    abstract void say0(String kind)

    abstract Agent agentFor(String label)

    abstract Agent agentOf(Map options)

    def node(Object label, Closure body) {
        Agent agent
        if (label instanceof Map && (label.kubernetes || label.docker)) agent = agentOf((Map) label)
        else agent = agentFor((label instanceof Map ? label.label : label) ?: '')
        block('node', [agent: agent, dir: agent.workspace]) {
            leaf('node') { getRun().log.println("Running on ${agent.name} in ${agent.workspace}"); null }
            try {
                body()
            } finally {
                agent.close()
            }
        }
    }

    def node(Closure body) { node('', body) }

    /** Returns the current block's agent, which steps with files and commands require. */
    Agent agent() {
        Agent agent = Frame.current().agent
        if (!agent) throw new Failure('this step needs a workspace: put it into a block node { }, or set agent')
        agent
    }

    def sh(Object command) { sh(script: command) }

    def sh(Map options) {
        leaf('sh') {
            Agent agent = agent()
            say0(options.label ? "sh (${options.label})" : 'sh')
            String script = options.script.toString().stripIndent()
            List<String> line = script.startsWith('#!') ? ['sh', '-c', 'f=$(mktemp) && printf %s "$0" >"$f" && chmod +x "$f" && exec "$f"', script] : ['sh', '-xe', '-c', script]
            Process process = agent.start(line, !options.returnStdout)
            process.outputStream.close()
            String output = null
            int code = (int) Frame.current().scope.guard(process) {
                if (options.returnStdout) {
                    Frame frame = Frame.current()
                    def errors = Thread.startDaemon { frame.run { getRun().log.copy(process.errorStream) } }
                    output = process.inputStream.getText('UTF-8')
                    errors.join()
                } else {
                    getRun().log.copy(process.inputStream)
                }
                process.waitFor()
            }
            Frame.current().scope.check()
            if (options.returnStatus) return code
            if (code != 0) throw new Failure("script returned exit code $code")
            output
        }
    }

    void bat(Object command) { throw new Failure('bat: agents run Linux; use sh') }

    void powershell(Object command) { bat(command) }

    boolean isUnix() { true }
}
