package pipeline

/**
 * Steps that read credentials. Credentials are secrets in the project that have the label of
 * Jenkins' sync plugin and that the pipeline's account may read. Their values appear neither in the
 * log nor in the journal.
 */
trait CredentialSteps {
    static final String LABEL = 'credential.sync.jenkins.openshift.io'
    private static final Map<String, String> CLASSES = [UsernamePasswordMultiBinding: 'usernamePassword', StringBinding: 'string', FileBinding: 'file',
        UsernamePasswordBinding: 'usernameColonPassword', SSHUserPrivateKeyBinding: 'sshUserPrivateKey']

    abstract Run getRun()

    abstract block(String kind, Map changes, Closure body)

    /** Returns the value for the directive `environment` from the credentials with this ID. */
    Credential credentials(Object id) { new Credential(values: secret(id.toString())) }

    Map usernamePassword(Map options) { [type: 'usernamePassword'] + options }

    Map usernameColonPassword(Map options) { [type: 'usernameColonPassword'] + options }

    Map sshUserPrivateKey(Map options) { [type: 'sshUserPrivateKey'] + options }

    Map file(Map options) { [type: 'file'] + options }

    def withCredentials(List bindings, Closure body) {
        Map<String, String> env = new LinkedHashMap<String, String>(Frame.current().env)
        Agent agent = Frame.current().agent ?: getRun().local
        List<String> files = []
        try {
            bindings.each { Map binding ->
                Map<String, String> values = secret((String) binding.credentialsId)
                env.putAll(variables(binding, values) { String content -> files << agent.store(content); files.last() })
            }
            return block('withCredentials', [env: env], body)
        } finally {
            if (files) agent.forget(files)
        }
    }

    /** Returns the variables of one binding. store stores a file, and returns its path. */
    private Map<String, String> variables(Map binding, Map<String, String> values, Closure store) {
        String type = binding.type ?: CLASSES[(String) binding['$class']]
        Closure value = { String key, String other = key -> valueOf(values, (String) binding.credentialsId, key, other) }
        Map result
        switch (type) {
            case 'usernamePassword':
                result = [(binding.usernameVariable): value('username'), (binding.passwordVariable): value('password')]
                break
            case 'usernameColonPassword':
                result = [(binding.variable): value('username') + ':' + value('password')]
                break
            case 'sshUserPrivateKey':
                result = [(binding.keyFileVariable): store(value('ssh-privatekey')), (binding.usernameVariable): values.username ?: '', (binding.passphraseVariable): values.passphrase ?: '']
                break
            case 'file':
                result = [(binding.variable): store(value('filename', 'file'))]
                break
            case 'string':
                result = [(binding.variable): value('secrettext', 'openshift-client-token')]
                break
            default:
                throw new Failure("withCredentials: the binding ${binding['$class'] ?: binding} is not supported: see $PipelineScript.STEPS")
        }
        result.findAll { it.key }
    }

    /** Returns the value of a key, or the only value. */
    private String valueOf(Map<String, String> values, String id, String key, String other) {
        String present = [key, other].find { values.containsKey(it) } ?: (values.size() == 1 ? values.keySet()[0] : null)
        if (!present) throw new Failure("the secret of the credentials \"$id\" has no key \"$key\"")
        values[present]
    }

    Map<String, String> secret(String id) {
        Map<String, String> values = secretOrNull(id)
        if (values == null) throw new Failure("the project has no secret for the credentials \"$id\" with the label $LABEL=true")
        values
    }

    /**
     * Returns a secret's values. After a restart, the secret is read again. The ID is PROJECT-NAME
     * or NAME.
     */
    Map<String, String> secretOrNull(String id) {
        String prefix = "${getRun().namespace}-"
        for (String name in [id.startsWith(prefix) ? id.substring(prefix.length()) : id, id].unique()) {
            if (!(name ==~ /[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)) continue
            try {
                Map secret = getRun().api.call('GET', "/api/v1/namespaces/${getRun().namespace}/secrets/$name")
                if (secret.metadata.labels?.get(LABEL) != 'true') continue
                Map<String, String> values = secret.data.collectEntries { key, value -> [(key): new String(((String) value).decodeBase64(), 'UTF-8')] }
                getRun().log.hide(Credential.lines(values))
                return values
            } catch (ApiError e) {
                if (e.status != 404) throw new Failure("credentials \"$id\": $e.message")
            }
        }
        null
    }
}
