package pipeline

import groovy.transform.CompileStatic

/** A build's log: the standard output, and a file from which a restarted runner repeats the log. */
@CompileStatic
class Log {
    private final OutputStream file
    private final List<String> secrets = []

    Log(File copy) {
        if (copy.exists()) {
            copy.withInputStream { System.out << it }
            println('[Pipeline] Resuming the build: finished steps are not repeated')
        }
        file = new FileOutputStream(copy, true)
    }

    synchronized void println(String text) {
        byte[] bytes = (prefix() + mask(text) + '\n').getBytes('UTF-8')
        System.out.write(bytes)
        System.out.flush()
        file?.write(bytes)
    }

    /** Replaces values in the log with **** from now on. */
    synchronized void hide(Collection<String> values) {
        secrets.addAll(values)
        secrets.sort { -it.length() }
    }

    /** Returns a text in which hidden values are replaced. */
    synchronized String mask(String text) {
        secrets.unique().inject(text) { String all, String secret -> all.replace(secret, '****') }
    }

    private static String prefix() {
        Frame frame = Frame.current()
        if (!frame) return ''
        (frame.timestamps ? "[${new Date().format("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", TimeZone.getTimeZone('UTC'))}] " : '') + frame.prefix
    }

    /** Copies a stream line by line, in the caller's frame. */
    void copy(InputStream input) {
        input.newReader('UTF-8').eachLine { println(it) }
    }
}
