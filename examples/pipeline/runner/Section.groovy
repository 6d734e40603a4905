package pipeline

/** The directives of a declarative pipeline or of one of its stages. */
class Section {
    private final Declarative pipeline
    final String name
    Object agent
    List<Section> stages = [], parallel = []
    Closure environment, body
    Conditions conditions
    boolean beforeAgent, failFast
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
        def collector = new Collector(pipeline.script)
        Declarative.with(body, collector)
        def calls = collector.calls
        def node = calls.node?.getAt(0)
        if (node instanceof Closure) {
            collector = new Collector(pipeline.script)
            Declarative.with(node, collector)
            calls = collector.calls
        }
        if (calls.label) agent = calls.label[0].toString()
        else if (calls.kubernetes || calls.docker) agent = [kubernetes: calls.kubernetes?.getAt(0), docker: calls.docker?.getAt(0)]
        else throw new Failure("agent ${calls.keySet()} is not known: use any, none, label, kubernetes or docker")
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
        conditions = new Conditions(pipeline)
        Declarative.with(body, conditions)
        beforeAgent = conditions.beforeAgent
    }

    void input(Closure body) {
        def collector = new Collector(pipeline.script)
        Declarative.with(body, collector)
        inputOptions = collector.calls.collectEntries { String key, List args -> [(key): args ? args[0] : null] }
    }

    void failFast(boolean value) { failFast = value }

    // Jenkins' own schedule and tools: BuildConfigs have triggers, and images contain tools.
    void triggers(Closure ignored) { }

    void tools(Closure ignored) { }

    def methodMissing(String directive, Object ignored) {
        throw new Failure("${name ? "stage \"$name\"" : 'the pipeline'} has an unknown directive \"$directive\"")
    }
}
