package pipeline

/** A Jenkinsfile's object `env`. An assigned variable is valid for all later steps. */
class Env {
    private final Run run

    Env(Run run) { this.run = run }

    def getProperty(String name) {
        Frame frame = Frame.current()
        frame.env.containsKey(name) ? frame.env[name] : own(frame)[name] ?: this.@run.env[name]
    }

    void setProperty(String name, Object value) { this.@run.env[name] = value == null ? '' : value.toString() }

    def getAt(String name) { getProperty(name) }

    void putAt(String name, Object value) { setProperty(name, value) }

    Map getEnvironment() { this.@run.env + Frame.current().env }

    private static Map own(Frame frame) {
        [STAGE_NAME: frame.stage?.name, WORKSPACE: frame.agent?.workspace, NODE_NAME: frame.agent?.name]
    }
}
