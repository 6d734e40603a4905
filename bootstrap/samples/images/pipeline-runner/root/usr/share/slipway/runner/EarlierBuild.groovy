package pipeline

import groovy.json.JsonSlurper

/** An earlier build of the same BuildConfig, as in `currentBuild.previousBuild`. */
class EarlierBuild {
    private static final Map RESULTS = [Complete: 'SUCCESS', Failed: 'FAILURE', Error: 'FAILURE', Cancelled: 'ABORTED']

    final Run run
    final int number
    /** The result, or null while the build is not finished. */
    final String result

    /**
     * Returns the last build before a number that still exists, or null. BuildConfigs have history
     * limits, so that builds with lower numbers can be missing.
     */
    static EarlierBuild before(Run run, int number) {
        Map entry = (Map) run.steps.leaf('earlier build') { find(run, number) }
        entry ? new EarlierBuild(run, entry) : null
    }

    private static Map find(Run run, int number) {
        for (int earlier = number - 1; earlier > Math.max(0, number - 100); earlier--) {
            try {
                return [number: earlier, result: resultOf(run.api.call('GET', run.pathOf(earlier)))]
            } catch (ApiError e) {
                if (e.status != 404) throw new Failure("read the build with the number $earlier: $e.message")
            }
        }
        null
    }

    /** Returns the result of a Build. Its phase does not tell UNSTABLE from SUCCESS. */
    private static String resultOf(Map build) {
        String report = build.metadata.annotations?.get(Report.STATUS)
        boolean unstable = build.status.phase == 'Complete' && report && new JsonSlurper().parseText(report).status == 'UNSTABLE'
        unstable ? 'UNSTABLE' : RESULTS[build.status.phase]
    }

    EarlierBuild(Run run, Map entry) {
        this.run = run
        number = (int) entry.number
        result = entry.result
    }

    String getCurrentResult() { result ?: 'SUCCESS' }

    String getId() { number.toString() }

    String getDisplayName() { "#$number" }

    String getFullDisplayName() { "${run.config} #$number" }

    EarlierBuild getPreviousBuild() { before(run, number) }
}
