package pipeline

/**
 * Another cluster, in which oc runs the commands of a block. oc never sends the token of the
 * pipeline's account to it.
 */
class Cluster {
    String server, project, token
    /** The PEM-encoded CA certificates, or null for the image's CA certificates. */
    String authorities
    boolean insecure

    /**
     * Returns the cluster at an address, or the cluster in one of the project's secrets, with the
     * keys server, token, ca.crt and project.
     */
    static Cluster of(Run run, String name) {
        if (name ==~ /(?:https|insecure):\/\/.+/) {
            return new Cluster(server: name.replaceFirst(/^insecure:/, 'https:'), insecure: name.startsWith('insecure:'), project: 'default')
        }
        Map<String, String> values = run.steps.secret(name)
        if (!values.server) throw new Failure("the secret of the cluster \"$name\" has no key \"server\"")
        new Cluster(server: values.server.trim(), token: OpenShift.tokenOf(values), authorities: values['ca.crt'], project: values.project?.trim() ?: 'default')
    }

    /** Returns the cluster's entry in a kubeconfig. */
    Map entry() {
        Map trust = insecure ? ['insecure-skip-tls-verify': true] : authorities ? ['certificate-authority-data': authorities.getBytes('UTF-8').encodeBase64().toString()] : [:]
        [server: server] + trust
    }
}
