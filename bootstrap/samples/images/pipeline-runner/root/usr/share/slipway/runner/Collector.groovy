package pipeline

/** Records the calls in a directive: their names and arguments. Parameters become values. */
class Collector {
    private final PipelineScript script
    final Map<String, List> calls = [:]
    final List all = []

    Collector(PipelineScript script) { this.script = script }

    def invokeMethod(String name, Object args) {
        List list = args instanceof Object[] ? args as List : [args]
        calls[name] = list
        if (name in ['string', 'text', 'password', 'booleanParam', 'choice'] && list && list[0] instanceof Map) {
            def parameter = script.getSteps0().invokeMethod(name, list as Object[])
            all << parameter
            return parameter
        }
        name
    }
}
