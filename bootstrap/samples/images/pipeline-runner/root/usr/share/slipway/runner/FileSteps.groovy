package pipeline

/** Steps that read and write files in the workspace. */
trait FileSteps {
    abstract Run getRun()

    abstract Agent agent()

    abstract leaf(String kind, Closure body)

    abstract block(String kind, Map changes, Closure body)

    abstract void say0(String kind)

    def dir(Object path, Closure body) { block('dir', [dir: resolve(path.toString())], body) }

    def ws(Object path, Closure body) { dir(path, body) }

    private String resolve(String path) {
        path.startsWith('/') ? path : "${Frame.current().dir}/$path".toString()
    }

    String pwd(Map options = [:]) { options.tmp ? "${Frame.current().dir}@tmp" : Frame.current().dir }

    void deleteDir() { leaf('deleteDir') { say0('deleteDir'); agent().output(['sh', '-c', 'rm -rf -- "$PWD"']); null } }

    void cleanWs(Map options = [:]) { deleteDir() }

    boolean fileExists(Object file) {
        leaf('fileExists') { agent().output(['sh', '-c', 'if test -e "$0"; then echo yes; fi', (file instanceof Map ? file.file : file).toString()]).trim() == 'yes' }
    }

    String readFile(Object file) {
        leaf('readFile') { agent().output(['cat', '--', (file instanceof Map ? file.file : file).toString()]) }
    }

    void writeFile(Map options) {
        leaf('writeFile') {
            agent().output(['sh', '-c', 'mkdir -p "$(dirname "$0")" && cat >"$0"', options.file.toString()], options.text.toString().getBytes('UTF-8'))
            null
        }
    }

    def load(Object file) {
        String text = readFile(file)
        Script script = getRun().load(file.toString(), text)
        def value = script.run()
        value == null ? script : value
    }

    void stash(Object options) {
        Map all = options instanceof Map ? options : [name: options]
        leaf('stash') {
            say0('stash')
            File file = stashFile(all.name)
            file.parentFile.mkdirs()
            file.withOutputStream { agent().pipe(tar(all), null, it) }
            getRun().log.println("Stashed files as ${all.name}")
            null
        }
    }

    /** Returns the command that writes files in the current directory as an archive. */
    List<String> tar(Map options) {
        String command = matching(options.includes ?: '**', options.excludes, '%p\\n')[2]
        ['sh', '-c', "$command >\"\${TMPDIR:-/tmp}/files.\$\$\" && tar -cf - -T \"\${TMPDIR:-/tmp}/files.\$\$\"; c=\$?; rm -f \"\${TMPDIR:-/tmp}/files.\$\$\"; exit \$c".toString()]
    }

    /** Returns the command that lists files in the current directory in a format for find. */
    List<String> matching(Object includes, Object excludes, String format) {
        String excluded = (excludes ?: '').toString().split(/[,\s]+/).findAll().collect { "! -path './${glob(it)}'" }.join(' ')
        String included = includes.toString().split(/[,\s]+/).findAll().collect { "-path './${glob(it)}'" }.join(' -o ')
        ['sh', '-c', "find . \\( -type f -o -type l \\) \\( $included \\) $excluded -printf '$format'".toString()]
    }

    /**
     * Converts an Ant pattern, in which ** matches any number of directories, to a pattern for
     * find.
     */
    private String glob(String pattern) {
        if (pattern.contains("'")) throw new Failure("the pattern $pattern has a quotation mark")
        String tail = pattern.endsWith('/') ? pattern + '**' : pattern
        tail.replace('**/', '*').replace('**', '*')
    }

    void unstash(Object options) {
        String name = options instanceof Map ? options.name : options
        leaf('unstash') {
            say0('unstash')
            File file = stashFile(name)
            if (!file.exists()) throw new Failure("no stash has the name \"$name\"")
            file.withInputStream { agent().pipe(['tar', '-xf', '-'], it, new ByteArrayOutputStream()) }
            null
        }
    }

    private File stashFile(Object name) { new File(getRun().work, 'stash/' + URLEncoder.encode(name.toString(), 'UTF-8') + '.tar') }

    void archiveArtifacts(Object options) {
        Map all = options instanceof Map ? options : [artifacts: options]
        leaf('archiveArtifacts') {
            say0('archiveArtifacts')
            File archive = File.createTempFile('artifacts', '.tar', getRun().work)
            int count
            try {
                archive.withOutputStream { agent().pipe(tar([includes: all.artifacts, excludes: all.excludes]), null, it) }
                count = getRun().artifacts.add(archive)
            } finally {
                archive.delete()
            }
            if (count == 0 && !all.allowEmptyArchive) throw new Failure("no artifact matches \"${all.artifacts}\"")
            getRun().log.println("Archived $count artifacts")
            null
        }
    }

    String libraryResource(Object path) { getRun().libraries.resource((path instanceof Map ? path.resource : path).toString()) }

    /** Loads a shared library by its name, or from a repository's address with credentials. */
    LibraryPart library(Object options) {
        Map all = options instanceof Map ? options : [identifier: options]
        def scm = all.retriever instanceof Map ? (all.retriever.scm ?: all.retriever) : [:]
        def remote = scm.userRemoteConfigs?.getAt(0)
        getRun().libraries.add(all.identifier.toString(), (scm.remote ?: remote?.url)?.toString(), scm.credentialsId ?: remote?.credentialsId)
        new LibraryPart(getRun().libraries.loader)
    }

    Map modernSCM(Map scm) { scm }

    void archive(Object pattern) { archiveArtifacts(pattern) }
}
