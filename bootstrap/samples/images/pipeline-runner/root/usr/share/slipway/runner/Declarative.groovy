package pipeline

/**
 * A declarative pipeline. It collects the directives, and then runs them with the scripted steps.
 */
class Declarative {
    final Run run
    final PipelineScript script
    final Steps steps
    final Section top

    Declarative(Run run, PipelineScript script, Closure body) {
        this.run = run
        this.script = script
        steps = run.steps
        top = new Section(this, null)
        top.read(body)
        if (!top.stages) throw new Failure('the pipeline has no stages')
        if (!top.agent) throw new Failure('the pipeline has no agent: set agent any')
    }

    /** Runs a closure. The delegate's methods and properties take precedence. */
    static def with(Closure body, Object delegate, int strategy = Closure.DELEGATE_FIRST) {
        Closure copy = (Closure) body.clone()
        copy.delegate = delegate
        copy.resolveStrategy = strategy
        copy.call()
    }

    /** Runs a closure that contains steps. */
    def steps(Closure body) { with(body, script, Closure.DELEGATE_ONLY) }

    void run() {
        top.parameters.each { it.apply(run) }
        around(top) {
            try {
                top.stages.each { runStage(it) }
                if (failure) throw failure
            } finally {
                post(top, run.result ?: 'SUCCESS')
            }
        }
    }

    private Throwable failure

    private runStage(Section stage) {
        if (failure) return skip(stage, 'earlier failure(s)')
        if (run.result == 'UNSTABLE' && top.options.containsKey('skipStagesAfterUnstable')) return skip(stage, 'an unstable stage before')
        try {
            stageBody(stage)
        } catch (Throwable t) {
            run.worsen(Failure.resultOf(t))
            failure = failure ?: t
            steps.leaf('error') { run.log.println(Run.describe(t)); null }
        }
    }

    private skip(Section stage, String why) {
        def skipped = steps.beginStage(stage.name)
        skipped.status = 'NOT_EXECUTED'
        steps.endStage(skipped, 'NOT_EXECUTED')
        steps.leaf('skip') { run.log.println("Stage \"${stage.name}\" skipped due to $why"); null }
    }

    private stageBody(Section stage) {
        Conditions early = stage.conditions()
        if (early?.beforeAgent && !early.holds()) return skip(stage, 'when conditional')
        steps.stage(stage.name) {
            String result = 'SUCCESS'
            around(stage) {
                if (early && !early.beforeAgent && !stage.conditions().holds()) {
                    steps.leaf('skip') { run.log.println("Stage \"${stage.name}\" skipped due to when conditional"); null }
                    Frame.current().stage.status = 'NOT_EXECUTED'
                    return
                }
                Closure rest = {
                    try {
                        inside(stage)
                        if (Frame.current().stage.status == 'UNSTABLE') result = 'UNSTABLE'
                    } catch (Throwable t) {
                        result = Failure.resultOf(t)
                        throw t
                    } finally {
                        post(stage, result)
                    }
                }
                stage.inputOptions == null ? rest() : steps.withEnv(answers(stage.inputOptions), rest)
            }
        }
    }

    /** Waits for a stage's input, and returns the values of its parameters as variables. */
    private List<String> answers(Map options) {
        List<Parameter> parameters = options.parameters ?: []
        def value = steps.input(options)
        Map values = value instanceof Map ? value : parameters ? [(parameters[0].name): value] : [:]
        values.collect { k, v -> "$k=$v".toString() }
    }

    private inside(Section stage) {
        if (stage.parallel) {
            Map branches = stage.parallel.collectEntries { branch -> [(branch.name): { stageBody(branch) }] }
            if (stage.failFast) branches.failFast = true
            steps.parallel(branches)
        } else if (stage.stages) {
            stage.stages.each { stageBody(it) }
        } else if (stage.body) {
            steps(stage.body)
        }
    }

    /**
     * The options. The last options have no effect, because BuildConfigs have run policies and
     * history limits.
     */
    private static final List OPTIONS = ['timeout', 'retry', 'timestamps', 'skipDefaultCheckout', 'checkoutToSubdirectory', 'parallelsAlwaysFailFast', 'skipStagesAfterUnstable',
            'ansiColor', 'lock', 'buildDiscarder', 'logRotator', 'disableConcurrentBuilds', 'disableResume', 'preserveStashes', 'durabilityHint', 'newContainerPerStage', 'quietPeriod',
            'overrideIndexTriggers', 'rateLimitBuilds', 'gitLabConnection']

    /** Runs a body with a section's agent, options and environment. */
    private around(Section section, Closure body) {
        Closure wrapped = { section.environment ? withEnvironment(section, body) : body() }
        section.options.each { String name, List args ->
            if (!OPTIONS.contains(name)) throw new Failure("options has no $name: use some of $OPTIONS")
            Closure inner = wrapped
            if (name in ['timeout', 'retry', 'timestamps', 'ansiColor', 'lock']) wrapped = { steps.invokeMethod(name, (args + [inner]) as Object[]) }
        }
        if (section.agent == null || section.agent == 'none') return wrapped()
        if (section.agent == 'any' && Frame.current().agent) return wrapped()
        steps.node(section.agent == 'any' ? '' : section.agent) {
            List directory = top.options.checkoutToSubdirectory
            Closure checkout = { steps.checkout([source: true]) }
            if (run.source() && !top.options.containsKey('skipDefaultCheckout')) directory ? steps.dir(directory[0], checkout) : checkout()
            wrapped()
        }
    }

    private withEnvironment(Section section, Closure body) {
        def variables = new Variables(script)
        with(section.environment, variables)
        try {
            return steps.withEnv(variables.values().collect { k, v -> "$k=$v".toString() }, body)
        } finally {
            if (variables.files()) Frame.current().agent.forget(variables.files())
        }
    }

    private static final List AFTER = ['always', 'changed', 'fixed', 'regression', 'aborted', 'failure', 'success', 'unstable', 'unsuccessful', 'cleanup']

    /** Runs the `post` blocks that apply to a result, in Jenkins' order. */
    private void post(Section section, String result) {
        if (!section.post) return
        def earlier = section.post.keySet().any { it in ['changed', 'fixed', 'regression'] } ? lastResult() : null
        def applies = [always: true, cleanup: true, changed: result != earlier, fixed: result == 'SUCCESS' && earlier in ['FAILURE', 'UNSTABLE'],
                       regression: earlier == 'SUCCESS' && result in ['FAILURE', 'UNSTABLE', 'ABORTED'], success: result == 'SUCCESS', failure: result == 'FAILURE',
                       unstable: result == 'UNSTABLE', aborted: result == 'ABORTED', unsuccessful: result != 'SUCCESS']
        section.post.keySet().findAll { !AFTER.contains(it) }.each { throw new Failure("post has no condition \"$it\": use one of $AFTER") }
        AFTER.findAll { section.post[it] && applies[it] }.each { steps(section.post[it]) }
    }

    /** Returns the result of the last earlier build that has finished, or null. */
    private String lastResult() {
        def build = EarlierBuild.before(run, run.number as int)
        while (build && !build.result) build = build.previousBuild
        build?.result
    }
}
