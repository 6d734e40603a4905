package pipeline

import groovy.json.JsonOutput

/**
 * The files that a pipeline has archived. When the pipeline ends, they become an image in the
 * stream CONFIG-artifacts. The image's tag is the build number. The image counts against the
 * project's image quota.
 */
class Artifacts {
    /** The maximum size of a build's files, in bytes. */
    static final long LIMIT = 1L << 30
    private static final String ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
    private final Run run

    Artifacts(Run run) { this.run = run }

    private File getDir() { new File(run.work, 'artifacts') }

    /** Adds the files in an archive, and returns their number. */
    int add(File archive) {
        dir.mkdirs()
        String list = run.local.output(['tar', '-xvf', archive.path, '-C', dir.path])
        long size = 0
        dir.eachFileRecurse { File file -> if (file.file) size += file.length() }
        if (size > LIMIT) throw new Failure("the artifacts have ${size >> 20} MiB, and the limit is ${LIMIT >> 20} MiB: archive fewer files")
        list.readLines().count { !it.endsWith('/') } as int
    }

    private Map create(Map metadata, String options) {
        run.api.call('POST', "/apis/image.openshift.io/v1/namespaces/$run.namespace/imagestreams$options",
                [apiVersion: 'image.openshift.io/v1', kind: 'ImageStream', metadata: metadata])
    }

    /** Returns the host and port of the cluster's registry. */
    private String registry() {
        String repository = create([generateName: 'artifacts-'], '?dryRun=All').status?.dockerImageRepository
        if (!repository) throw new Failure('the cluster has no registry')
        repository.split('/')[0]
    }

    /** Pushes the files, if there are any. */
    void publish() {
        if (!dir.directory) return
        String name = "${run.config}-artifacts"
        def metadata = [name: name]
        def owner = run.build.metadata.ownerReferences?.find { it.kind == 'BuildConfig' }
        if (owner) metadata.ownerReferences = [[apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, uid: owner.uid]]
        try {
            create(metadata, '')
        } catch (ApiError e) {
            if (e.status != 409) throw e
        }
        // A pipeline's service account can create streams, but cannot read them.
        String repository = "${registry()}/$run.namespace/$name"
        String token = new File(ACCOUNT, 'token').text.trim()
        File config = new File(run.work, 'registry.json')
        config.text = JsonOutput.toJson([auths: [(repository.split('/')[0]): [auth: "serviceaccount:$token".toString().bytes.encodeBase64().toString()]]])
        try {
            run.local.output(['sh', '-c', 'tar -czf "$0.tar.gz" -C "$0" . && SSL_CERT_FILE="$1" exec oc image append --registry-config="$2" --to="$3" "$0.tar.gz"',
                              dir.path, "$ACCOUNT/ca.crt".toString(), config.path, "$repository:$run.number".toString()])
        } finally {
            config.delete()
        }
        run.log.println("The artifacts are in the image stream tag $name:$run.number")
    }
}
