package pipeline

import groovy.transform.CompileStatic

/** The context of a step: directory, variables, stage and agent. Each block has its own frame. */
@CompileStatic
class Frame {
    private static final ThreadLocal<Frame> CURRENT = new ThreadLocal<Frame>()

    /** Identifies the block within the Jenkinsfile, for the journal. */
    String path = ''
    String prefix = ''
    String dir
    Map<String, String> env = [:]
    Stage stage
    Agent agent
    Scope scope
    /** The project and token that openshift.withProject and withCredentials set, or null. */
    String project, token
    /** The cluster that openshift.withCluster sets, or null for the pipeline's own cluster. */
    Cluster cluster
    boolean timestamps
    /** The pods that podTemplate defines, by label. */
    Map<String, Map> templates = [:]
    private int count

    static Frame current() { CURRENT.get() }

    synchronized String next(String kind) { "${path}/${count++}:${kind}" }

    /** Returns a copy for a nested block. */
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
