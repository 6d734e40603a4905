package pipeline

import groovy.transform.CompileStatic

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.locks.Lock
import java.util.concurrent.locks.ReentrantLock

/** The steps of scripted pipelines that control the flow. Traits contain the other steps. */
class Steps implements AgentSteps, CommandSteps, FileSteps, ScmSteps, SshSteps, InputSteps, CredentialSteps, OpenShiftSteps, TestSteps, UtilitySteps {
    final Run run
    Declarative declarative

    Steps(Run run) { this.run = run }

    /**
     * Runs a step once. If an earlier runner has finished the step, returns the result in the
     * journal. A step's result must be text, a number, a boolean, or a list or map of these types.
     */
    @CompileStatic
    def leaf(String kind, Closure body) {
        Frame frame = Frame.current()
        String key = frame.next(kind)
        Map done = run.journal.get(key)
        if (done) {
            if (done.error != null) throw new Failure((String) done.error, (String) done.result)
            return done.value
        }
        frame.scope.check()
        try {
            def value = body()
            if (value instanceof GString) value = value.toString()
            run.journal.add([key: key, value: value])
            return value
        } catch (InterruptedException e) {
            frame.scope.check()
            throw e
        } catch (Exception e) {
            run.journal.add([key: key, error: e.message ?: e.class.name, result: Failure.resultOf(e)])
            throw e
        }
    }

    /** Runs a block step's body in its own frame. */
    @CompileStatic
    def block(String kind, Map changes = [:], Closure body) {
        Frame frame = Frame.current()
        String path = frame.next(kind)
        say(kind)
        frame.child(path, changes).run(body)
    }

    /** Logs a step's name, as Jenkins does. */
    @CompileStatic
    void say(String kind) { leaf('log') { run.log.println("[Pipeline] $kind"); null } }

    def stage(String name, Closure body) {
        Stage stage = beginStage(name)
        try {
            def value = block("stage ($name)", [stage: stage], body)
            endStage(stage, 'SUCCESS')
            return value
        } catch (Throwable t) {
            endStage(stage, Failure.resultOf(t) == 'ABORTED' ? 'ABORTED' : Failure.resultOf(t) == 'UNSTABLE' ? 'UNSTABLE' : 'FAILED')
            throw t
        }
    }

    def stage(Map options, Closure body) { stage((String) options.name, body) }

    /** The old form without a block: a stage lasts until the next stage begins. */
    def stage(String name) {
        Frame frame = Frame.current()
        if (frame.stage) endStage(frame.stage, 'SUCCESS')
        say("stage ($name)")
        frame.stage = beginStage(name)
        null
    }

    Stage beginStage(String name) {
        Map begin = (Map) leaf('stage') { [start: System.currentTimeMillis()] }
        def stage = new Stage(name: name, start: (long) begin.start)
        synchronized (run.report.stages) {
            stage.id = (6 + 5 * run.report.stages.size()).toString()
            run.report.stages << stage
        }
        run.report.change()
        stage
    }

    void endStage(Stage stage, String status) {
        if (stage.end) return
        Map end = (Map) leaf('end of stage') { [end: System.currentTimeMillis()] }
        stage.end = (long) end.end
        if (stage.status == 'IN_PROGRESS') stage.status = status
        run.report.change()
    }

    void echo(Object message) { leaf('echo') { say0('echo'); run.log.println(String.valueOf(message)); null } }

    void echo(Map options) { echo(options.message) }

    /** Logs the name of a step that has no block. */
    void say0(String kind) { run.log.println("[Pipeline] $kind") }

    void error(Object message) { leaf('error') { say0('error'); throw new Failure(String.valueOf(message)) } }

    void unstable(Object message) {
        leaf('unstable') { say0('unstable'); run.log.println("WARNING: ${message instanceof Map ? message.message : message}"); null }
        run.worsen('UNSTABLE')
        if (Frame.current().stage) Frame.current().stage.status = 'UNSTABLE'
    }

    def script(Closure body) { body() }

    def withEnv(List variables, Closure body) {
        Map<String, String> env = new LinkedHashMap<String, String>(Frame.current().env)
        variables.each { String entry ->
            int at = entry.indexOf('=')
            if (at < 1) throw new Failure("withEnv: \"$entry\" is not NAME=value")
            String name = entry.substring(0, at), value = entry.substring(at + 1)
            if (name.startsWith('PATH+')) { name = 'PATH'; value = value + ':' + (env.PATH ?: System.getenv('PATH')) }
            env[name] = value
        }
        block('withEnv', [env: env], body)
    }

    def retry(Object times, Closure body) {
        int count = (times instanceof Map ? times.count : times) as int
        for (int attempt = 1; ; attempt++) {
            try {
                return block(attempt == 1 ? 'retry' : "retry, attempt $attempt", [:], body)
            } catch (Failure e) {
                if (attempt >= count || e.result == 'ABORTED') throw e
                leaf('error') { run.log.println("ERROR: $e.message"); null }
            }
        }
    }

    def timeout(Map options, Closure body) {
        Frame frame = Frame.current()
        long millis = seconds(options.time, options.unit ?: 'MINUTES') * 1000
        def scope = new Scope(frame.scope)
        // The duration includes the time that an earlier runner has used.
        long started = (long) leaf('timeout') { System.currentTimeMillis() }
        def timer = new Timer(true)
        timer.runAfter((int) Math.max(1, started + millis - System.currentTimeMillis())) {
            scope.interrupt(new Failure("Timeout has been exceeded after ${options.time} ${options.unit ?: 'MINUTES'}", 'ABORTED'))
        }
        try {
            return block('timeout', [scope: scope], body)
        } finally {
            timer.cancel()
        }
    }

    def timeout(Object minutes, Closure body) { timeout([time: minutes], body) }

    static long seconds(Object amount, Object unit) {
        Map units = [SECONDS: 1, MINUTES: 60, HOURS: 3600, DAYS: 86400, MILLISECONDS: 0.001]
        if (!units[unit.toString()]) throw new Failure("the unit \"$unit\" is not one of ${units.keySet()}")
        Math.max(1, ((amount as BigDecimal) * units[unit.toString()]) as long)
    }

    void sleep(Object time) {
        Map options = time instanceof Map ? time : [time: time]
        leaf('sleep') { say0('sleep'); pause(seconds(options.time, options.unit ?: 'SECONDS') * 1000); null }
    }

    /** Sleeps for a duration, or until the frame is interrupted. */
    void pause(long millis) { Frame.current().scope.guard(null) { Thread.currentThread().sleep(millis) } }

    def waitUntil(Map options = [:], Closure body) {
        long delay = 250
        while (!block('waitUntil', [:], body)) {
            leaf('wait') { pause(delay); null }
            delay = Math.min(15000, (long) (delay * 1.2))
        }
    }

    def catchError(Map options = [:], Closure body) {
        try {
            return block('catchError', [:], body)
        } catch (Failure e) {
            if (e.result == 'ABORTED' && options.catchInterruptions == false) throw e
            leaf('error') { run.log.println("ERROR: ${options.message ?: e.message}"); null }
            run.worsen((String) (options.buildResult ?: e.result))
            if (options.stageResult && Frame.current().stage) Frame.current().stage.status = options.stageResult == 'FAILURE' ? 'FAILED' : options.stageResult
            return null
        }
    }

    def warnError(Object message, Closure body) {
        catchError([buildResult: 'UNSTABLE', stageResult: 'UNSTABLE', message: message instanceof Map ? message.message : message], body)
    }

    def parallel(Map branches) {
        Frame frame = Frame.current()
        boolean failFast = branches.failFast as boolean
        String path = frame.next('parallel')
        say('parallel')
        def scope = new Scope(frame.scope)
        Map results = Collections.synchronizedMap([:])
        List<Throwable> errors = Collections.synchronizedList([])
        List<Thread> threads = branches.findAll { it.value instanceof Closure }.collect { name, body ->
            Frame child = frame.child("$path/$name", [prefix: "[$name] ".toString(), scope: scope])
            Thread.start("branch $name") {
                try {
                    results[name] = child.run((Closure) body)
                } catch (Throwable t) {
                    errors << t
                    if (failFast) scope.interrupt(new Failure("the parallel branch $name has failed", 'ABORTED'))
                }
            }
        }
        frame.scope.guard(null) {
            try {
                threads*.join()
            } catch (InterruptedException e) {
                scope.interrupt(new Failure('interrupted', 'ABORTED'))
                threads*.join(5000)
                throw e
            }
        }
        if (errors) throw errors[0]
        results
    }

    private final Map<String, Lock> locks = new ConcurrentHashMap<String, Lock>()

    /** Runs a body while no other parallel branch of the build holds the lock. */
    def lock(Object resource, Closure body) {
        String name = resource instanceof Map ? resource.resource ?: resource.label : resource
        if (!name) throw new Failure('lock: set the parameter resource or label')
        Lock lock = locks.computeIfAbsent(name) { new ReentrantLock() }
        Frame.current().scope.guard(null) { lock.lockInterruptibly() }
        try {
            return block('lock', [:], body)
        } finally {
            lock.unlock()
        }
    }

    // Jenkins settings that have no effect on a build in its own pod.
    void properties(List settings) {
        settings.flatten().findAll { it instanceof Parameter }.each { it.apply(run) }
    }

    void milestone(Object ignored = null) { }

    def timestamps(Closure body) { block('timestamps', [timestamps: true], body) }

    def ansiColor(Object ignored, Closure body) { block('ansiColor', [:], body) }

    def wrap(Map ignored, Closure body) { block('wrap', [:], body) }


    // Functions that define parameters in `properties([parameters([...])])` and in the directive
    // `parameters`.
    List parameters(List list) { list }

    /** Defines a parameter, or credentials for `withCredentials`. */
    Object string(Map options) { options.credentialsId ? [type: 'string'] + options : text(options) }

    Parameter text(Map options) { new Parameter(options, options.defaultValue ?: options.value ?: '') }

    Parameter password(Map options) { text(options) }

    Parameter booleanParam(Map options) { new Parameter(options, (options.defaultValue ?: options.value) as boolean) }

    Parameter choice(Map options) {
        List choices = options.choices instanceof List ? options.choices : options.choices.toString().readLines()
        new Parameter(options, choices[0], choices)
    }
}
