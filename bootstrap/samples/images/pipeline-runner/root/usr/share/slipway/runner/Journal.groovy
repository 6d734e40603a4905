package pipeline

import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import groovy.transform.CompileStatic

/**
 * The results of finished steps, one JSON object per line. A restarted runner runs the Jenkinsfile
 * from its beginning, and uses the recorded results of finished steps.
 */
@CompileStatic
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
            } catch (ignored) { // a killed runner has not completed this line
            }
        }
    }

    /** Returns a finished step's entry, or null. */
    synchronized Map get(String key) { finished[key] }

    synchronized void add(Map entry) {
        file.append(JsonOutput.toJson(entry) + '\n', 'UTF-8')
    }
}
