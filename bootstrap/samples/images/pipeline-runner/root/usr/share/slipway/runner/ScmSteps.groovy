package pipeline

/** Steps that fetch source. */
trait ScmSteps {
    abstract Run getRun()

    abstract Agent agent()

    abstract leaf(String kind, Closure body)

    abstract void say0(String kind)

    abstract sh(Map options)

    /**
     * Copies the build's source, which was cloned earlier with the build's secret, or clones
     * another repository.
     */
    def checkout(Object scm) {
        if (scm instanceof Map && scm['$class'] == 'GitSCM') {
            Map remote = scm.userRemoteConfigs[0]
            return git(url: remote.url, credentialsId: remote.credentialsId, branch: (scm.branches ? scm.branches[0].name : 'master').toString().replaceFirst(/^\*\//, ''))
        }
        if (scm instanceof Map && scm['$class'] == 'OpenShiftImageStreams') return getRun().steps.openshiftImageStream(scm)
        if (scm instanceof Map && scm.scm) return checkout(scm.scm)
        if (!scm || !getRun().source()) throw new Failure('checkout scm: the source of the build is not a Git repository')
        Map result = (Map) leaf('checkout') {
            say0('checkout')
            copy(getRun().source())
            String commit = getRun().local.output(['git', '-c', 'safe.directory=*', '-C', getRun().source().path, 'rev-parse', 'HEAD']).trim()
            getRun().log.println("Checked out revision $commit")
            [GIT_COMMIT: commit, GIT_URL: getRun().env.GIT_URL, GIT_BRANCH: getRun().env.GIT_BRANCH]
        }
        getRun().env.GIT_COMMIT = result.GIT_COMMIT
        result
    }

    /** Copies a directory from the runner to the agent's current directory. */
    private void copy(File directory) {
        def archive = new PipedInputStream(1 << 16)
        def output = new PipedOutputStream(archive)
        Frame frame = Frame.current().child('', [dir: directory.path])
        def reader = Thread.startDaemon { frame.run { output.withStream { getRun().local.pipe(['tar', '-cf', '-', '.'], null, it) } } }
        agent().pipe(['tar', '-xf', '-', '--no-same-owner'], archive, new ByteArrayOutputStream())
        reader.join()
    }

    def git(Object options) {
        Map all = options instanceof Map ? options : [url: options]
        leaf('git') {
            say0('git')
            String branch = all.branch ?: 'master', url = all.url.toString()
            // The images of agents do not need git.
            File clone = agent() instanceof PodAgent ? new File(getRun().work, "clone-${UUID.randomUUID()}") : null
            def command = 'set -e; git init -q; git config --add safe.directory "$PWD"; ' +
                    'git fetch -q --depth 1 -- "$0" "$1" && git checkout -q -f FETCH_HEAD && git rev-parse HEAD'
            Frame frame = Frame.current().child('', clone ? [dir: clone.path] : [:])
            String commit = frame.run { GitLogin.run(getRun(), url, all.credentialsId) { getRun().local.output(['sh', '-c', command, url, branch]).trim() } }
            if (clone) {
                copy(clone)
                clone.deleteDir()
            }
            getRun().log.println("Checked out revision $commit of ${all.url.toString().replaceAll('//[^/@]*@', '//')}")
            [GIT_COMMIT: commit, GIT_URL: all.url.toString(), GIT_BRANCH: branch]
        }
    }
}
