package pipeline

/** A login of git to a repository's server, with the project's credentials. */
class GitLogin {
    private static final String HELPER = '!f() { printf \'username=%s\\npassword=%s\\n\' "$SLIPWAY_GIT_USER" "$SLIPWAY_GIT_PASSWORD"; }; f'

    /**
     * Runs a body in a frame in which git logs in to the server at an address. No other server
     * receives the credentials.
     */
    static run(Run run, String url, Object credentials, Closure body) {
        if (SshLogin.appliesTo(url)) return SshLogin.run(run, url, credentials, body)
        if (!credentials) return body()
        Map<String, String> secret = run.steps.secret(credentials.toString())
        if (!secret.password) throw new Failure("git: the credentials \"$credentials\" have no password")
        String server = (url =~ '^https?://[^/]*').with { it ? it[0].toString().replaceAll('//[^/@]*@', '//') : 'none' }
        Map<String, String> env = [
            SLIPWAY_GIT_USER: secret.username ?: 'git', SLIPWAY_GIT_PASSWORD: secret.password,
            GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: "credential.${server}.helper".toString(), GIT_CONFIG_VALUE_0: HELPER,
        ]
        Frame.current().child('', [env: Frame.current().env + env]).run(body)
    }
}
