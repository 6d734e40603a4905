package pipeline

/** The step that publishes test results. */
trait TestSteps {
    abstract Run getRun()

    abstract Agent agent()

    abstract leaf(String kind, Closure body)

    abstract void say0(String kind)

    abstract void unstable(Object message)

    abstract List<String> tar(Map options)

    /** Returns the numbers of tests under Jenkins' names. */
    Map junit(Object options) {
        Map all = options instanceof Map ? options : [testResults: options]
        Map summary = (Map) leaf('junit') {
            say0('junit')
            Map found = reports(all.testResults.toString())
            if (found.total == 0 && !all.allowEmptyResults) throw new Failure("no report with tests matches \"${all.testResults}\"")
            getRun().log.println("Recorded ${found.total} tests: ${found.failed} failed, ${found.skipped} skipped")
            found
        }
        getRun().report.add(summary)
        if (summary.failed && !all.skipMarkingBuildUnstable) unstable("${summary.failed} tests have failed")
        [totalCount: summary.total, failCount: summary.failed, skipCount: summary.skipped, passCount: summary.total - summary.failed - summary.skipped]
    }

    /** Copies the files that match a pattern from the agent, and reads them. */
    private Map reports(String pattern) {
        File dir = File.createTempDir('reports', ''), archive = new File(dir, 'reports.tar'), files = new File(dir, 'files')
        try {
            files.mkdir()
            archive.withOutputStream { agent().pipe(tar([includes: pattern]), null, it) }
            getRun().local.output(['tar', '-xf', archive.path, '-C', files.path])
            return TestReport.read(files)
        } finally {
            dir.deleteDir()
        }
    }
}
