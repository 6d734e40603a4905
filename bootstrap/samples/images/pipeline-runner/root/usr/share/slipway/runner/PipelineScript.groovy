package pipeline

/**
 * The base class of Jenkinsfiles. Its methods are the steps, and its properties are the variables.
 */
abstract class PipelineScript extends Script {
    /** The page with the list of steps. */
    static final String STEPS = 'docs/admin/pipelines.md, section Steps'
    private Run run
    private Steps steps

    void connect(Run run) {
        this.run = run
        steps = run.steps
        binding.setVariable('env', new Env(run))
        binding.setVariable('params', run.params)
        binding.setVariable('currentBuild', new CurrentBuild(run))
        binding.setVariable('scm', run.build.spec.source?.git ? [source: run.build.spec.source.git] : null)
        binding.setVariable('openshift', run.openshift)
        binding.setVariable('any', 'any')
        binding.setVariable('none', 'none')
    }

    void pipeline(Closure body) { steps.declarative = new Declarative(run, this, body) }

    def getSteps() { this }

    Steps getSteps0() { steps }

    def getProperty(String name) {
        try {
            return super.getProperty(name)
        } catch (MissingPropertyException e) {
            def variable = run.params.containsKey(name) ? run.params[name] : binding.getVariable('env')[name]
            if (variable == null) variable = run.libraries.variable(name)
            if (variable == null) throw e
            return variable
        }
    }

    def invokeMethod(String name, Object args) {
        List list = args instanceof Object[] ? args as List : [args]
        if (metaClass.respondsTo(this, name, list as Object[])) return super.invokeMethod(name, list as Object[])
        if (binding.hasVariable(name) && binding.getVariable(name) instanceof Closure) return ((Closure) binding.getVariable(name)).call(*list)
        def global = run.libraries.variable(name)
        if (global) return global.invokeMethod('call', list as Object[])
        if (steps.metaClass.respondsTo(steps, name, list as Object[])) return steps.invokeMethod(name, list as Object[])
        if (steps.metaClass.respondsTo(steps, name)) throw new Failure("the step $name does not take these parameters: ${list.collect { it instanceof Closure ? '{...}' : it }}")
        throw new Failure("no such DSL method '$name' found among the steps of this runner: see $STEPS")
    }

    // In Groovy, all objects have these methods, which would hide the steps.
    void sleep(long time) { steps.sleep(time) }

    void sleep(Map options) { steps.sleep(options) }

    void println(Object text) { steps.echo(text) }

    void print(Object text) { steps.echo(text) }
}
