package pipeline

import org.codehaus.groovy.runtime.InvokerHelper

/**
 * The result of the step `library`: the packages and classes of shared libraries by name, as in
 * library('tools').acme.Text.upper('a') and library('tools').acme.Text.new().
 */
class LibraryPart {
    private final ClassLoader loader
    /** The name of a package or class, or "". */
    private final String path

    LibraryPart(ClassLoader loader, String path = '') {
        this.loader = loader
        this.path = path
    }

    /** Returns the class with this name, or null if a package has this name. */
    private Class find() {
        try {
            return path ? loader.loadClass(path) : null
        } catch (ClassNotFoundException ignored) {
            return null
        }
    }

    def getProperty(String name) {
        Class type = find()
        type ? InvokerHelper.getProperty(type, name) : new LibraryPart(loader, path ? "$path.$name" : name)
    }

    def invokeMethod(String name, Object arguments) {
        Class type = find()
        if (!type) throw new Failure("no library has the class \"$path\"")
        name == 'new' ? InvokerHelper.invokeConstructorOf(type, arguments) : InvokerHelper.invokeStaticMethod(type, name, arguments)
    }

    String toString() { "library($path)" }
}
