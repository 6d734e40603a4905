package pipeline

/** Another cluster, where oc runs the commands of a block. It never gets the token of the pipeline's account. */
class Cluster {
    String server, project, token
    /** The certificates of authorities in PEM, or null for those of the image. */
    String authorities
    boolean insecure

    /** Returns the cluster of an address, or of a secret of the project with the keys server, token, ca.crt and project. */
    static Cluster of(Run run, String name) {
        if (name ==~ /(?:https|insecure):\/\/.+/) {
            return new Cluster(server: name.replaceFirst(/^insecure:/, 'https:'), insecure: name.startsWith('insecure:'), project: 'default')
        }
        Map<String, String> values = run.steps.secret(name)
        if (!values.server) throw new Failure("the secret of the cluster \"$name\" has no key \"server\"")
        new Cluster(server: values.server.trim(), token: OpenShift.tokenOf(values), authorities: values['ca.crt'], project: values.project?.trim() ?: 'default')
    }

    /** Returns the entry of a kubeconfig. */
    Map entry() {
        Map trust = insecure ? ['insecure-skip-tls-verify': true] : authorities ? ['certificate-authority-data': authorities.getBytes('UTF-8').encodeBase64().toString()] : [:]
        [server: server] + trust
    }
}
