package pipeline

/**
 * A login of git to an SSH server, with a key from credentials or from an enclosing `sshagent`
 * block. As in builds, the server is verified only if the credentials contain known_hosts.
 */
class SshLogin {
    /** Reports whether git accesses a repository over SSH: ssh://HOST/PATH, or HOST:PATH. */
    static boolean appliesTo(String url) { url.startsWith('ssh://') || !url.contains('://') && url ==~ /[^\/:]+:.+/ }

    /** Runs a body with the login's variables. Git runs in the pipeline's pod. */
    static run(Run run, String url, Object credentials, Closure body) {
        Map<String, String> secret = credentials ? SshAgent.secretOf(run, credentials.toString()) : [:]
        String hosts = secret.known_hosts ? run.local.store(secret.known_hosts) : null
        SshAgent keeper = credentials ? SshAgent.start(run.local) : null
        try {
            keeper?.add(secret)
            Map<String, String> env = [GIT_SSH_COMMAND: command(url, secret.username, hosts)] + Frame.current().env + (keeper?.variables ?: [:])
            return Frame.current().child('', [env: env]).run(body)
        } finally {
            keeper?.stop()
            if (hosts) run.local.forget([hosts])
        }
    }

    private static String command(String url, String user, String hosts) {
        List<String> words = ['ssh', '-o', 'BatchMode=yes']
        words += hosts ? ['-o', 'StrictHostKeyChecking=yes', '-o', "UserKnownHostsFile=\"$hosts\""] :
            ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR']
        if (!(url ==~ /(ssh:\/\/)?[^\/@]+@.*/)) words += ['-l', user ==~ /[\w.-]+/ ? user : 'git']
        words.join(' ')
    }
}
