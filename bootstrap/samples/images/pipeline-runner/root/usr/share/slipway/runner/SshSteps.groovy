package pipeline

/**
 * The step that makes private keys available to a block's commands. The keys are in secrets of the
 * project that have the key ssh-privatekey.
 */
trait SshSteps {
    abstract Run getRun()

    abstract Agent agent()

    abstract block(String kind, Map changes, Closure body)

    abstract Map<String, String> secretOrNull(String id)

    /** Options: credentials, which is a list of IDs, and ignoreMissing. */
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
