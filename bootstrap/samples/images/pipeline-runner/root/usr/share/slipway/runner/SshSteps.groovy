package pipeline

/** The step that gives private keys to the commands of a block: secrets of the project with the key ssh-privatekey. */
trait SshSteps {
    abstract Run getRun()

    abstract Agent agent()

    abstract block(String kind, Map changes, Closure body)

    abstract Map<String, String> secretOrNull(String id)

    /** Options: credentials, a list of IDs, and ignoreMissing. */
    def sshagent(Map options, Closure body) {
        List<String> ids = [options.credentials].flatten()*.toString()
        List<Map<String, String>> secrets = ids.findAll { !options.ignoreMissing || secretOrNull(it) }.collect { SshAgent.secretOf(getRun(), it) }
        SshAgent keeper = SshAgent.start(agent())
        try {
            secrets.each { keeper.add(it) }
            return block('sshagent', [env: Frame.current().env + keeper.variables], body)
        } finally {
            keeper.stop()
        }
    }

    def sshagent(Object credentials, Closure body) { sshagent([credentials: credentials], body) }
}
