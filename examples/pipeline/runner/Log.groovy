package pipeline

/** The log of a build: the standard output, and a file from which a runner that starts again repeats it. */
class Log {
    private final OutputStream file

    Log(File copy) {
        if (copy.exists()) {
            copy.withInputStream { System.out << it }
            println('[Pipeline] Resuming the build: finished steps are not repeated')
        }
        file = new FileOutputStream(copy, true)
    }

    synchronized void println(String text) {
        byte[] bytes = (mask(text) + '\n').getBytes('UTF-8')
        System.out.write(bytes)
        System.out.flush()
        file?.write(bytes)
    }

    private static String mask(String text) {
        Frame frame = Frame.current()
        if (!frame) return text
        if (frame.prefix) text = frame.prefix + text
        for (String secret : frame.secrets) text = text.replace(secret, '****')
        text
    }

    /** Copies a stream line by line, in the frame of the caller. */
    void copy(InputStream input) {
        input.newReader('UTF-8').eachLine { println(it) }
    }
}
