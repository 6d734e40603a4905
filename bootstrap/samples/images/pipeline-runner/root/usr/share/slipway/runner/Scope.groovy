package pipeline

import groovy.transform.CompileStatic

/** The threads and processes that a timeout or a failed parallel branch interrupts. */
@CompileStatic
class Scope {
    private final Scope parent
    private final Set<Thread> threads = []
    private final Set<Process> processes = []
    private Failure reason

    Scope(Scope parent) { this.parent = parent }

    /** Throws the reason if this scope or an enclosing scope is interrupted. */
    void check() {
        for (Scope s = this; s != null; s = s.parent) {
            synchronized (s) { if (s.reason != null) throw new Failure(s.reason.message, s.reason.result) }
        }
    }

    void interrupt(Failure why) {
        synchronized (this) {
            if (reason != null) return
            reason = why
            processes.each { kill(it) }
            threads.each { it.interrupt() }
        }
    }

    /** Runs a body. An interruption of this scope or an enclosing scope ends the body. */
    def guard(Process process, Closure body) {
        List<Scope> all = []
        for (Scope s = this; s != null; s = s.parent) all << s
        all.each { s -> synchronized (s) { s.threads << Thread.currentThread(); if (process) s.processes << process } }
        try {
            check()
            return body()
        } catch (Exception e) { // killing the process can cause any error
            check()
            throw e
        } finally {
            all.each { s -> synchronized (s) { s.threads.remove(Thread.currentThread()); if (process) s.processes.remove(process) } }
            if (process) kill(process)
            Thread.interrupted()
        }
    }

    static void kill(Process process) {
        process.descendants().each { ProcessHandle child -> child.destroyForcibly() }
        process.destroyForcibly()
    }
}
