package pipeline

import groovy.json.JsonException
import groovy.json.JsonSlurper

/** The step that waits for a user's decision. */
trait InputSteps {
    /**
     * The Build annotation <prefix><ID of the input>. Its value is "proceed", "abort", or JSON with
     * parameter values.
     */
    static final String ANNOTATION = 'pipeline.slipway.io/input-'
    /**
     * The annotation in which the API server records the user who has responded, as JSON: user and
     * groups.
     */
    static final String USER = 'pipeline.slipway.io/user-'

    abstract Run getRun()

    abstract leaf(String kind, Closure body)

    abstract void say0(String kind)

    abstract void pause(long millis)

    /** Returns the values of the parameters as a map, or the value of the only parameter. */
    def input(Object options = [:]) {
        Map all = options instanceof Map ? options : [message: options]
        List<Parameter> parameters = all.parameters instanceof List ? all.parameters : all.parameters ? [all.parameters] : []
        Map values = (Map) leaf('input') {
            String id = (all.id ?: 'input').toString().toLowerCase().replaceAll(/[^a-z0-9-]/, '-')
            for (int i = 2; getRun().report.inputs.containsKey(id) || getRun().answered.contains(id); i++) id = "${id.replaceFirst(/-\d+$/, '')}-$i"
            say0('input')
            getRun().log.println("${all.message ?: 'Proceed?'}")
            getRun().log.println("To proceed, run: oc annotate build/${getRun().name} $ANNOTATION$id=proceed (or abort)")
            if (parameters) getRun().log.println("To set parameters, use a JSON object with some of ${parameters*.name} instead of proceed.")
            Stage stage = Frame.current().stage
            stage?.pausedSince = System.currentTimeMillis()
            getRun().report.inputs[id] = [id: id, proceedText: all.ok ?: 'Proceed', message: all.message ?: '', inputs: parameters*.json(), proceedUrl: '', abortUrl: '', redirectApprovalUrl: '']
            getRun().report.change()
            Map answer
            try {
                answer = waitForAnswer(id, parameters, (all.submitter ?: '').toString().tokenize(', '))
            } finally {
                getRun().report.inputs.remove(id)
                if (stage) { stage.paused += System.currentTimeMillis() - stage.pausedSince; stage.pausedSince = 0 }
                getRun().report.change()
            }
            getRun().answered << id
            String by = answer.user ? " by $answer.user" : ''
            if (answer.values == null) throw new Failure("Rejected$by", 'ABORTED')
            getRun().log.println("Approved$by")
            answer.values + (all.submitterParameter ? [(all.submitterParameter.toString()): answer.user] : [:])
        }
        values.size() > 1 ? values : values ? values.values()[0] : null
    }

    private Map waitForAnswer(String id, List<Parameter> parameters, List<String> submitters) {
        String refused = null
        while (true) {
            try {
                Map annotations = (Map) getRun().api.call('GET', getRun().buildPath).metadata.annotations ?: [:]
                String answer = annotations[ANNOTATION + id]
                if (answer && answer != refused) {
                    Map by = annotations[USER + id] ? (Map) new JsonSlurper().parseText((String) annotations[USER + id]) : [:]
                    String problem = submitters && !([by.user] + (by.groups ?: [])).any { it in submitters } ? "${by.user ?: 'an unknown user'} is not one of $submitters" : null
                    try {
                        if (!problem) return [user: by.user, values: valuesOf(answer, parameters)]
                    } catch (Failure | JsonException e) {
                        problem = e.message.readLines()[0]
                    }
                    getRun().log.println("The response \"$answer\" is rejected: $problem. Remove the annotation, and respond again.")
                    refused = answer
                } else if (!answer) {
                    refused = null
                }
            } catch (ApiError e) {
                if (!e.temporary) throw new Failure("input: $e.message")
            } catch (IOException ignored) { // the API server is restarting
            }
            pause(1000)
        }
    }

    /** Returns the values in a response, or null if the user has aborted. */
    private Map valuesOf(String answer, List<Parameter> parameters) {
        if (answer == 'abort') return null
        if (answer != 'proceed' && !answer.startsWith('{')) throw new Failure('use proceed, abort, or a JSON object')
        Map given = answer == 'proceed' ? [:] : (Map) new JsonSlurper().parseText(answer)
        given.keySet().each { String name -> if (!parameters.any { it.name == name }) throw new Failure("the parameter $name does not exist") }
        parameters.collectEntries { [(it.name): it.valueOf(given[it.name])] }
    }
}
