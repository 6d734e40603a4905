package pipeline

import groovy.json.JsonOutput
import groovy.json.JsonSlurper

/**
 * The results of finished steps, one JSON object per line. A runner that starts again runs the
 * Jenkinsfile from its beginning, and takes the results of finished steps from here.
 */
class Journal {
    private final File file
    private final Map<String, Map> finished = [:]

    Journal(File file) {
        this.file = file
        if (!file.exists()) return
        file.eachLine('UTF-8') { line ->
            try {
                Map entry = (Map) new JsonSlurper().parseText(line)
                finished[(String) entry.key] = entry
            } catch (ignored) { // the line that a killed runner was writing
            }
        }
    }

    /** Returns the entry of a finished step, or null. */
    synchronized Map get(String key) { finished[key] }

    synchronized void add(Map entry) {
        file.append(JsonOutput.toJson(entry) + '\n', 'UTF-8')
    }
}
