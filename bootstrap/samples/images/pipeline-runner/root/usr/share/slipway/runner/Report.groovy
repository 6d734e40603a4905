package pipeline

import groovy.json.JsonOutput
import groovy.transform.CompileStatic

/**
 * Stores a build's stages, pending inputs and test results in annotations of the Build after each
 * change.
 */
@CompileStatic
class Report {
    static final String STATUS = 'openshift.io/jenkins-status-json', INPUTS = 'openshift.io/jenkins-pending-input-actions-json'
    static final String TESTS = 'pipeline.slipway.io/test-results-json'

    private final Run run
    final List<Stage> stages = Collections.synchronizedList([])
    final Map<String, Map> inputs = Collections.synchronizedMap([:])
    private Map tests
    String status = 'IN_PROGRESS'
    private boolean changed, ended, warned
    private Thread thread

    Report(Run run) { this.run = run }

    void start() {
        thread = Thread.startDaemon('report') { loop() }
    }

    synchronized void change() {
        changed = true
        notifyAll()
    }

    /** Adds the summary of a test report. */
    synchronized void add(Map summary) {
        tests = TestReport.sum([tests, summary].findAll())
        change()
    }

    /** Sends the last report, and waits until it is sent. */
    void end(String result) {
        status = ['SUCCESS': 'SUCCESS', 'UNSTABLE': 'UNSTABLE', 'ABORTED': 'ABORTED'][result] ?: 'FAILED'
        synchronized (this) { ended = changed = true; notifyAll() }
        thread.join(60000)
    }

    private void loop() {
        while (true) {
            boolean last
            synchronized (this) {
                while (!changed) wait()
                changed = false
                last = ended
            }
            boolean sent = send()
            if (last && (sent || !Thread.sleep(500))) { if (sent) return; change() }
            else if (!sent) { Thread.sleep(500); change() }
        }
    }

    /** Returns false if the report must be sent again. */
    private boolean send() {
        def annotations = [(STATUS): JsonOutput.toJson(json()), (INPUTS): JsonOutput.toJson(inputs.values())]
        Map tested = tests
        if (tested) annotations[TESTS] = TestReport.json(tested)
        try {
            run.api.call('PUT', run.buildPath + '/details', [apiVersion: 'build.openshift.io/v1', kind: 'Build',
                    metadata: [name: run.name, namespace: run.namespace, annotations: annotations]])
        } catch (ApiError e) {
            if (e.temporary) return false
            if (!warned) run.log.println("warning: cannot store the stages of the build: $e.message")
            warned = true
        } catch (IOException ignored) {
            return false
        }
        true
    }

    private Map json() {
        List<Map> list = stages.toArray().collect { ((Stage) it).json() }
        long now = System.currentTimeMillis()
        def pending = !inputs.isEmpty()
        [_links: [:], id: run.number, name: "#${run.number}".toString(), status: pending ? 'PAUSED_PENDING_INPUT' : status, startTimeMillis: run.started,
         endTimeMillis: ended ? now : 0, durationMillis: now - run.started, queueDurationMillis: 0,
         pauseDurationMillis: list.sum(0) { Map stage -> stage.pauseDurationMillis }, stages: list]
    }
}
