package pipeline

/** The directive `environment`: assignments become variables. */
class Variables {
    private final PipelineScript script
    private final Map<String, String> assigned = [:]

    Variables(PipelineScript script) { this.script = script }

    Map<String, String> values() { this.@assigned }

    void setProperty(String name, Object value) { this.@assigned[name] = String.valueOf(value) }

    def getProperty(String name) { this.@assigned.containsKey(name) ? this.@assigned[name] : this.@script.getProperty(name) }

    def invokeMethod(String name, Object args) { this.@script.invokeMethod(name, args) }
}
