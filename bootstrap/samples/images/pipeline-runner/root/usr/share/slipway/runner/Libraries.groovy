package pipeline

import org.codehaus.groovy.control.CompilerConfiguration

/**
 * Shared libraries: repositories with classes in src, global variables in vars, and files in
 * resources. The build's variable LIBRARY_NAME contains the address of the library "name". A
 * private library was fetched earlier with the build's secret, which the runner cannot read.
 */
class Libraries {
    private final Run run
    final GroovyClassLoader loader
    private final Map<String, File> dirs = [:]
    private final Map<String, Script> variables = [:]

    Libraries(Run run, CompilerConfiguration configuration) {
        this.run = run
        loader = new GroovyClassLoader(Main.classLoader, configuration)
    }

    /**
     * Adds the libraries in a Jenkinsfile's annotations, and returns the Jenkinsfile without these
     * annotations.
     */
    String read(String text) {
        text.replaceAll(/(?m)^([ \t]*)@Library\s*\(\s*(?:value\s*=\s*)?(\[[^\]]*\]|'[^'\n]*'|"[^"\n]*")\s*\)(?:[ \t]*_\b)?/) { String all, String space, String names ->
            (names =~ /['"]([^'"]+)['"]/).each { add((String) it[1], null) }
            space + '\n' * all.count('\n')
        }
    }

    /** Adds the library NAME or NAME@REVISION. The address and the credentials can be null. */
    synchronized void add(String identifier, String address, Object credentials = null) {
        int at = identifier.indexOf('@')
        String name = at < 0 ? identifier : identifier.substring(0, at), revision = at < 0 ? 'HEAD' : identifier.substring(at + 1)
        if (dirs[name]) return
        String variable = 'LIBRARY_' + name.toUpperCase().replaceAll(/[^A-Z0-9]/, '_')
        File fetched = new File(run.work, "library-repositories/$variable")
        String url = address ?: fetched.directory ? fetched.path : run.env[variable]
        if (!url) throw new Failure("the library \"$name\" has no repository: set the variable $variable of the build to its address")
        File dir = new File(run.work, 'libraries/' + URLEncoder.encode(name, 'UTF-8'))
        run.log.println("Loading library $name@$revision")
        try { // A runner that starts again uses the revision of the first one.
            String command = 'set -e; cd "$0" 2>/dev/null && exit; rm -rf "$0.part"; mkdir -p "$0.part"; cd "$0.part"; git init -q; ' +
                    'git fetch -q --depth 1 -- "$1" "$2"; git checkout -q FETCH_HEAD; mv "$0.part" "$0"'
            GitLogin.run(run, url, credentials) { run.local.output(['sh', '-c', command, dir.path, url, revision]) }
        } catch (Failure e) {
            throw new Failure("library \"$name\": $e.message")
        }
        dirs[name] = dir
        loader.addClasspath(new File(dir, 'src').path)
    }

    /** Returns the global variable with a name, or null. */
    synchronized Script variable(String name) {
        if (variables[name]) return variables[name]
        File file = find("vars/${name}.groovy")
        if (file) variables[name] = run.load("vars/${name}.groovy", file.getText('UTF-8'))
        variables[name]
    }

    /** Returns the text of a file in resources. */
    String resource(String path) {
        File file = find("resources/$path")
        if (!file) throw new Failure("no library has the resource \"$path\"")
        file.getText('UTF-8')
    }

    private File find(String path) {
        dirs.values().collect { File dir -> [dir, new File(dir, path)] }
                .find { File dir, File file -> file.file && file.canonicalPath.startsWith(dir.canonicalPath + '/') }?.get(1) as File
    }
}
