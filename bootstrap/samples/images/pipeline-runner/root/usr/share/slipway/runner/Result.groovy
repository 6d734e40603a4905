package pipeline

import groovy.json.JsonOutput

/**
 * The result of an `openshift` action: its oc commands, each with verb, cmd, out, err and status.
 */
class Result {
    final String operation
    final List<Map> actions

    Result(String operation, List<Map> actions) {
        this.operation = operation
        this.actions = actions
    }

    String getOut() { lines('out') }

    String getErr() { lines('err') }

    int getStatus() { (int) actions.inject(0) { int all, Map action -> all | (action.status as int) } }

    private String lines(String key) { actions.collect { it[key] }.findAll().collect { it.endsWith('\n') ? it : it + '\n' }.join('') }

    String toString() { JsonOutput.prettyPrint(JsonOutput.toJson([operation: operation, status: status, actions: actions])) }
}
