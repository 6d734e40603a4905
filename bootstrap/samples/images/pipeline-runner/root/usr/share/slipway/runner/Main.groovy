package pipeline

import groovy.transform.CompileStatic

/**
 * Runs the Jenkinsfile of a build. The variable BUILD contains the Build. The working directory
 * contains the files that outlive the container: the source, the workspace, the log and the journal.
 *
 * The exit code is 0 for every result, because the kubelet restarts a container that fails. The
 * termination message contains the result; the build controller reads it there.
 *
 * The classes that each run needs first are compiled statically. For a class that calls others
 * dynamically, Groovy reads the methods of all of them, which is a sixth of the CPU time of a start.
 */
@CompileStatic
class Main {
    /** Arguments: the working directory, and the path of the file for the termination message. */
    static void main(String[] args) {
        def run = new Run(System.getenv('BUILD'), new File(args[0]))
        new File(args[1]).text = run.execute()
        Runtime.runtime.halt(0)
    }
}
