package pipeline

/** The result of `credentials` in the directive `environment`. */
class Credential {
    Map<String, String> values

    /**
     * Returns the variables that the directive sets for a name. store stores a file, and returns
     * its path.
     */
    Map<String, String> variables(String name, Closure store) {
        String password = values.password ?: ''
        if (values.containsKey('ssh-privatekey')) return [(name): store(values['ssh-privatekey']), (name + '_USR'): values.username ?: '', (name + '_PSW'): values.passphrase ?: '']
        if (values.containsKey('username')) return [(name): "$values.username:$password".toString(), (name + '_USR'): values.username, (name + '_PSW'): password]
        if (values.containsKey('filename')) return [(name): store(values.filename)]
        [(name): values.secrettext ?: values['openshift-client-token'] ?: password ?: values.values().join('')]
    }

    private static final List<String> PUBLIC = ['username', 'server', 'project', 'ca.crt', 'known_hosts']

    /** Returns the values that must not appear in the log. */
    static List<String> lines(Map<String, String> values) {
        values.findAll { !PUBLIC.contains(it.key) }.collectMany { [it.value.trim()] + it.value.readLines()*.trim() }.findAll { it.length() > 3 }
    }
}
