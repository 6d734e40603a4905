package pipeline

/** Where a step runs: directory, variables, stage, agent. Each block has its own frame. */
class Frame {
    private static final ThreadLocal<Frame> CURRENT = new ThreadLocal<Frame>()

    /** Identifies the block in the Jenkinsfile, for the journal. */
    String path = ''
    String prefix = ''
    String dir
    Map<String, String> env = [:]
    Stage stage
    Agent agent
    Scope scope
    /** The project and the token of openshift.withProject and withCredentials, or null. */
    String project, token
    /** The cluster of openshift.withCluster, or null if it is the pipeline's own. */
    Cluster cluster
    boolean timestamps
    /** The pods of podTemplate by their labels. */
    Map<String, Map> templates = [:]
    private int count

    static Frame current() { CURRENT.get() }

    synchronized String next(String kind) { "${path}/${count++}:${kind}" }

    /** Returns a copy for a block inside. */
    Frame child(String name, Map changes = [:]) {
        def frame = new Frame(path: name, prefix: prefix, dir: dir, env: new LinkedHashMap<String, String>(env), stage: stage,
                agent: agent, scope: scope, project: project, token: token, cluster: cluster, timestamps: timestamps, templates: templates)
        changes.each { key, value -> frame[(String) key] = value }
        frame
    }

    def run(Closure body) {
        Frame outer = CURRENT.get()
        CURRENT.set(this)
        try {
            return body()
        } finally {
            CURRENT.set(outer)
        }
    }
}
