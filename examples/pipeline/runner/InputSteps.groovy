package pipeline

/** The step that waits for the decision of a person. */
trait InputSteps {
    /** Annotation of the Build: <prefix><id of the input> is "proceed", "abort", or JSON with values of parameters. */
    static final String ANNOTATION = 'pipeline.slipway.io/input-'

    abstract Run getRun()

    abstract leaf(String kind, Closure body)

    abstract void say0(String kind)

    abstract void pause(long millis)

    def input(Object options = [:]) {
        Map all = options instanceof Map ? options : [message: options]
        leaf('input') {
            String id = (all.id ?: 'input').toString().toLowerCase().replaceAll(/[^a-z0-9-]/, '-')
            for (int i = 2; getRun().report.inputs.containsKey(id) || getRun().answered.contains(id); i++) id = "${id.replaceFirst(/-\d+$/, '')}-$i"
            say0('input')
            getRun().log.println("${all.message ?: 'Proceed?'}")
            getRun().log.println("To proceed, run: oc annotate build/${getRun().name} $ANNOTATION$id=proceed (or abort)")
            Stage stage = Frame.current().stage
            stage?.pausedSince = System.currentTimeMillis()
            getRun().report.inputs[id] = [id: id, proceedText: all.ok ?: 'Proceed', message: all.message ?: '', inputs: [], proceedUrl: '', abortUrl: '', redirectApprovalUrl: '']
            getRun().report.change()
            String answer
            try {
                answer = waitForAnswer(id)
            } finally {
                getRun().report.inputs.remove(id)
                if (stage) { stage.paused += System.currentTimeMillis() - stage.pausedSince; stage.pausedSince = 0 }
                getRun().report.change()
            }
            getRun().answered << id
            if (answer == 'abort') throw new Failure('Rejected by a user', 'ABORTED')
            getRun().log.println('Approved')
            null
        }
    }

    private String waitForAnswer(String id) {
        while (true) {
            try {
                String answer = getRun().api.call('GET', getRun().buildPath).metadata.annotations?.get(ANNOTATION + id)
                if (answer in ['proceed', 'abort']) return answer
                if (answer) getRun().log.println("The annotation has the value \"$answer\", want proceed or abort")
            } catch (ApiError e) {
                if (!e.temporary) throw new Failure("input: $e.message")
            } catch (IOException ignored) { // the API server restarts
            }
            pause(1000)
        }
    }
}
