package pipeline

import groovy.transform.CompileStatic

/**
 * A stage in the format of the REST API of Jenkins' pipelines. Times are in milliseconds since
 * 1970.
 */
@CompileStatic
class Stage {
    String id, name, status = 'IN_PROGRESS'
    long start, end, paused
    long pausedSince

    Map json() {
        long now = end ?: System.currentTimeMillis()
        [_links: [:], id: id, name: name, execNode: '', status: pausedSince ? 'PAUSED_PENDING_INPUT' : status, startTimeMillis: start,
         durationMillis: status == 'NOT_EXECUTED' ? 0 : now - start, pauseDurationMillis: paused + (pausedSince ? now - pausedSince : 0)]
    }
}
