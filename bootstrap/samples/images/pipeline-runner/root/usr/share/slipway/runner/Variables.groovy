package pipeline

/** The directive `environment`: assignments set variables. */
class Variables {
    private final PipelineScript script
    private final Map<String, String> assigned = [:]
    private final List<String> files = []

    Variables(PipelineScript script) { this.script = script }

    Map<String, String> values() { this.@assigned }

    /** Returns the credentials' files. */
    List<String> files() { this.@files }

    void setProperty(String name, Object value) {
        if (value instanceof Credential) {
            List<String> stored = this.@files
            this.@assigned.putAll(((Credential) value).variables(name) { String content -> stored << Frame.current().agent.store(content); stored.last() })
            return
        }
        this.@assigned[name] = String.valueOf(value)
    }

    def getProperty(String name) { this.@assigned.containsKey(name) ? this.@assigned[name] : this.@script.getProperty(name) }

    def invokeMethod(String name, Object args) { this.@script.invokeMethod(name, args) }
}
