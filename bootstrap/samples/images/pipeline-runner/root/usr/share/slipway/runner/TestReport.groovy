package pipeline

import groovy.json.JsonOutput

import java.nio.file.Files
import java.nio.file.LinkOption
import java.nio.file.Path
import javax.xml.parsers.SAXParserFactory
import org.xml.sax.Attributes
import org.xml.sax.SAXException
import org.xml.sax.helpers.DefaultHandler

/** Reads test reports in JUnit's format: the totals, and the failures by name. */
class TestReport extends DefaultHandler {
    /** The maximum size of a step's files, in bytes. */
    static final long LIMIT = 64L << 20
    /**
     * Limits on a summary: the number of failures, the characters of a text, and the size in bytes.
     */
    static final int MAX_FAILURES = 100, MAX_TEXT = 300, MAX_BYTES = 32 << 10

    final Map summary = [total: 0, failed: 0, skipped: 0, durationMillis: 0L, failures: []]
    private Map test
    private boolean reads

    /** Returns the summary of all files in a directory. Does not follow symbolic links. */
    static Map read(File dir) {
        List<Path> files = Files.walk(dir.toPath()).iterator().findAll { Files.isRegularFile((Path) it, LinkOption.NOFOLLOW_LINKS) }.sort()
        long size = (long) files.sum(0L) { Files.size(it) }
        if (size > LIMIT) throw new Failure("the reports have ${size >> 20} MiB, and the limit is ${LIMIT >> 20} MiB: publish fewer files")
        sum(files.collect { Path file -> new TestReport().parse(file, dir.toPath().relativize(file).toString()) })
    }

    /** Returns the sum of several summaries. */
    static Map sum(List<Map> all) {
        Map result = ['total', 'failed', 'skipped', 'durationMillis'].collectEntries { String key -> [(key): all.sum(0) { it[key] }] }
        result.failures = all.collectMany { (List) it.failures }.take(MAX_FAILURES)
        result
    }

    /**
     * Returns a summary as JSON, with as many failures as fit. JsonOutput writes only ASCII
     * characters.
     */
    static String json(Map summary) {
        for (int count = ((List) summary.failures).size(); ; count = count.intdiv(2)) {
            String text = JsonOutput.toJson(summary + [failures: ((List) summary.failures).take(count)])
            if (text.length() <= MAX_BYTES || count == 0) return text
        }
    }

    private Map parse(Path file, String name) {
        def factory = SAXParserFactory.newInstance()
        factory.setFeature('http://apache.org/xml/features/disallow-doctype-decl', true) // no entities
        try {
            Files.newInputStream(file).withCloseable { factory.newSAXParser().parse((InputStream) it, this) }
        } catch (SAXException e) { // an incomplete report is a failure
            summary.total++
            fail([suite: cut(name), name: ''], "the report cannot be read: $e.message")
        }
        summary
    }

    void startElement(String uri, String local, String tag, Attributes attributes) {
        if (tag == 'testcase') {
            test = [suite: cut(attributes.getValue('classname')), name: cut(attributes.getValue('name'))]
            summary.total++
            String time = attributes.getValue('time')?.replace(',', '')
            if (time ==~ /\d{1,9}(\.\d{1,9})?/) summary.durationMillis += (long) ((time as BigDecimal) * 1000)
        } else if (test && tag == 'skipped') {
            summary.skipped++
            test = null
        } else if (test && tag in ['failure', 'error']) {
            String message = attributes.getValue('message')
            fail(test, message ?: '')
            reads = !message // the text begins with the message in this case
            test = null
        }
    }

    void characters(char[] text, int start, int length) {
        if (!reads) return
        String message = new String(text, start, length).trim()
        if (!message) return
        reads = false
        if (summary.failures) ((Map) ((List) summary.failures).last()).message = cut(message.readLines()[0])
    }

    void endElement(String uri, String local, String tag) {
        if (tag == 'testcase') test = null
        if (tag in ['failure', 'error']) reads = false
    }

    private fail(Map test, String message) {
        summary.failed++
        if (((List) summary.failures).size() < MAX_FAILURES) ((List) summary.failures) << (test + [message: cut(message)])
    }

    private static String cut(String text) { (text ?: '').take(MAX_TEXT) }
}
