package pipeline

/** A Jenkinsfile's object `currentBuild`. */
class CurrentBuild {
    private final Run run

    CurrentBuild(Run run) { this.run = run }

    String getResult() { run.result }

    void setResult(Object value) { run.worsen(value.toString()) }

    String getCurrentResult() { run.result ?: 'SUCCESS' }

    int getNumber() { run.number as int }

    String getId() { run.number }

    String getDisplayName() { run.displayName }

    void setDisplayName(Object value) { run.displayName = value }

    String getFullDisplayName() { "${run.config} ${run.displayName}" }

    String getProjectName() { run.config }

    String getDescription() { run.description }

    void setDescription(Object value) { run.description = value }

    long getStartTimeInMillis() { run.started }

    long getDuration() { System.currentTimeMillis() - run.started }

    String getDurationString() { "${duration.intdiv(1000)} sec" }

    boolean resultIsBetterOrEqualTo(String other) { Run.ORDER.indexOf(currentResult) <= Run.ORDER.indexOf(other) }

    boolean resultIsWorseOrEqualTo(String other) { Run.ORDER.indexOf(currentResult) >= Run.ORDER.indexOf(other) }

    EarlierBuild getPreviousBuild() { EarlierBuild.before(run, number) }

    List getChangeSets() { [] }

    Map getRawBuild() { run.build }
}
