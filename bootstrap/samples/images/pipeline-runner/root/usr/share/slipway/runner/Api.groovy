package pipeline

import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import groovy.transform.CompileStatic

import javax.net.ssl.HttpsURLConnection
import javax.net.ssl.SSLContext
import javax.net.ssl.TrustManagerFactory
import java.security.KeyStore
import java.security.cert.CertificateFactory

/** The cluster's API. Requests use the token of the pod's service account. */
@CompileStatic
class Api {
    private static final File ACCOUNT = new File('/var/run/secrets/kubernetes.io/serviceaccount')
    private SSLContext tls

    private synchronized SSLContext tls() {
        if (tls) return tls
        def store = KeyStore.getInstance(KeyStore.defaultType)
        store.load(null, null)
        new File(ACCOUNT, 'ca.crt').withInputStream { input ->
            CertificateFactory.getInstance('X.509').generateCertificates(input).eachWithIndex { certificate, i -> store.setCertificateEntry("ca$i", certificate) }
        }
        def trust = TrustManagerFactory.getInstance(TrustManagerFactory.defaultAlgorithm)
        trust.init(store)
        def context = SSLContext.getInstance('TLS')
        context.init(null, trust.trustManagers, null)
        tls = context
    }

    /**
     * Sends a request and returns the decoded response. Throws an ApiError for any status other
     * than 2xx.
     */
    Map call(String method, String path, Map body = null) {
        String host = System.getenv('KUBERNETES_SERVICE_HOST')
        if (!host) throw new ApiError(404, 'this container is not in a cluster')
        if (host.contains(':')) host = "[$host]"
        def url = new URL("https://$host:${System.getenv('KUBERNETES_SERVICE_PORT')}$path")
        def connection = (HttpsURLConnection) url.openConnection()
        connection.SSLSocketFactory = tls().socketFactory
        connection.requestMethod = method
        connection.connectTimeout = connection.readTimeout = 30000
        connection.setRequestProperty('Authorization', 'Bearer ' + new File(ACCOUNT, 'token').text.trim())
        connection.setRequestProperty('Accept', 'application/json')
        if (body != null) {
            connection.doOutput = true
            connection.setRequestProperty('Content-Type', 'application/json')
            connection.outputStream.withStream { it.write(JsonOutput.toJson(body).getBytes('UTF-8')) }
        }
        int status = connection.responseCode
        String text = (status < 300 ? connection.inputStream : connection.errorStream)?.getText('UTF-8') ?: '{}'
        if (status >= 300) throw new ApiError(status, messageOf(text))
        (Map) new JsonSlurper().parseText(text)
    }

    private static String messageOf(String text) {
        try {
            return ((Map) new JsonSlurper().parseText(text)).message
        } catch (ignored) {
            return text
        }
    }
}
