package pipeline

/** The rollouts of a selector's objects. */
class Rollout {
    private final Selector selector

    Rollout(Selector selector) { this.selector = selector }

    def methodMissing(String verb, Object arguments) {
        if (!(verb in ['latest', 'status', 'history', 'cancel', 'pause', 'resume', 'retry', 'undo'])) throw new Failure("rollout() has no action $verb: see $PipelineScript.STEPS")
        selector.each("rollout:$verb".toString(), ['rollout', verb], OpenShift.split('rollout', arguments as List), verb in ['status', 'history'])
    }
}
