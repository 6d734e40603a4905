package pipeline

/** The directives of a declarative pipeline, or of one of its stages. */
class Section {
    private final Declarative pipeline
    final String name
    Object agent
    List<Section> stages = [], parallel = []
    Closure environment, body, when
    boolean failFast
    Map<String, Closure> post = [:]
    Map<String, List> options = [:]
    List<Parameter> parameters = []
    Map inputOptions

    Section(Declarative pipeline, String name) {
        this.pipeline = pipeline
        this.name = name
    }

    Section read(Closure body) {
        Declarative.with(body, this)
        this
    }

    void agent(Object value) { agent = value }

    void agent(Closure body) {
        Map options = optionsOf(body)
        if (options.node instanceof Map) options = (Map) options.node
        if (options.label) agent = options.label.toString()
        else if (options.kubernetes || options.docker) agent = options
        else throw new Failure("agent ${options.keySet()} is not supported: use any, none, label or kubernetes")
    }

    /** Returns the calls in a closure as a map, including calls in nested closures. */
    private Map optionsOf(Closure body) {
        def collector = new Collector(pipeline.script)
        Declarative.with(body, collector)
        collector.calls.collectEntries { String key, List args -> [(key): args && args[0] instanceof Closure ? optionsOf((Closure) args[0]) : args ? args[0] : true] }
    }

    void stages(Closure body) { stages.addAll(new StageList(pipeline).read(body)) }

    void parallel(Closure body) { parallel.addAll(new StageList(pipeline).read(body)) }

    void environment(Closure body) { environment = body }

    void steps(Closure body) { this.body = body }

    void post(Closure body) {
        def collector = new Collector(pipeline.script)
        Declarative.with(body, collector)
        collector.calls.each { String condition, List args -> post[condition] = (Closure) args[0] }
    }

    void options(Closure body) {
        def collector = new Collector(pipeline.script)
        Declarative.with(body, collector)
        options.putAll(collector.calls)
        if (options.parallelsAlwaysFailFast != null) failFast = true
    }

    void parameters(Closure body) {
        def collector = new Collector(pipeline.script)
        Declarative.with(body, collector)
        parameters.addAll(collector.all.findAll { it instanceof Parameter })
    }

    void when(Closure body) {
        when = body
    }

    /** Returns the directive `when` with the current values of its expressions, or null. */
    Conditions conditions() {
        if (!when) return null
        def conditions = new Conditions(pipeline)
        Declarative.with(when, conditions)
        conditions
    }

    void input(Closure body) {
        def collector = new Collector(pipeline.script)
        Declarative.with(body, collector)
        inputOptions = collector.calls.collectEntries { String key, List args -> [(key): args ? args[0] : null] }
        if (inputOptions.parameters instanceof Closure) {
            collector = new Collector(pipeline.script)
            Declarative.with((Closure) inputOptions.parameters, collector)
            inputOptions.parameters = collector.all
        }
    }

    void failFast(boolean value) { failFast = value }

    // These directives configure Jenkins' schedule and tools. BuildConfigs have triggers instead,
    // and images contain tools.
    void triggers(Closure ignored) { }

    void tools(Closure ignored) { }

    def methodMissing(String directive, Object ignored) {
        throw new Failure("${name ? "stage \"$name\"" : 'the pipeline'} has an unknown directive \"$directive\"")
    }
}
