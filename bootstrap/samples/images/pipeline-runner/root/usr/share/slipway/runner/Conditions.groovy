package pipeline

/** The directive `when`. All of its conditions must be true, except within anyOf or not. */
class Conditions {
    private final Declarative pipeline
    private final List<Closure<Boolean>> tests = []
    boolean beforeAgent

    Conditions(Declarative pipeline) { this.pipeline = pipeline }

    boolean holds() { tests.every { it() } }

    void expression(Closure body) { tests << { pipeline.steps(body) as boolean } }

    void environment(Map o) { tests << { pipeline.script.getProperty('env')[o.name] == o.value } }

    /** The condition `equals`. Run renames it, because closures have a method with this name. */
    void equalTo(Map o) { tests << { o.expected == o.actual } }

    void branch(Object pattern) {
        String text = (pattern instanceof Map ? pattern.pattern : pattern).toString().split(/\*+/, -1).collect { it ? java.util.regex.Pattern.quote(it) : '' }.join('.*')
        tests << { (pipeline.run.env.BRANCH_NAME ?: '') ==~ text }
    }

    void tag(Object pattern) { tests << { false } }

    void buildingTag() { tests << { false } }

    void changeRequest(Map o = [:]) { tests << { false } }

    void not(Closure body) { Conditions inner = read(body); tests << { !inner.holds() } }

    void allOf(Closure body) { Conditions inner = read(body); tests << { inner.holds() } }

    void anyOf(Closure body) { Conditions inner = read(body); tests << { inner.tests.any { it() } } }

    void triggeredBy(Object cause) { tests << { true } }

    void beforeAgent(boolean value) { beforeAgent = value }

    void beforeInput(boolean value) { }

    void beforeOptions(boolean value) { }

    private Conditions read(Closure body) {
        def inner = new Conditions(pipeline)
        Declarative.with(body, inner)
        inner
    }
}
