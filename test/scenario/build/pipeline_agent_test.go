package build

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// agents is a scripted pipeline that uses a pod with two containers, and then an agent that it
// selects by label. agentOfDirective is a declarative pipeline. The tests replace IMAGE with an
// image.
const agents = `
podTemplate(label: 'two', containers: [
  containerTemplate(name: 'tools', image: 'IMAGE', command: 'cat', ttyEnabled: true, envVars: [envVar(key: 'WHERE', value: 'tools')])
]) {
  node('two') {
    stage('Two') {
      writeFile file: 'a', text: 'first'
      container('tools') { sh 'echo "$WHERE has $(cat a)"; echo second >b' }
      sh 'echo "outside ${WHERE:-no tools}"'
      echo "status ${sh(returnStatus: true, script: 'exit 3')}, output ${sh(returnStdout: true, script: 'cat b').trim()}"
      withEnv(['WORD=one\ntwo \\n']) { sh 'printf "<%s>\n" "$WORD"' }
      withCredentials([string(credentialsId: 'words', variable: 'W'), file(credentialsId: 'notes', variable: 'F')]) {
        container('tools') { sh 'echo "secret $W, $(cat "$F")" | tr a-z A-Z; echo "$F" >c' }
      }
      sh 'if test -e "$(cat c)"; then exit 1; fi; rm c'
      writeYaml file: 'object.yaml', data: [apiVersion: 'v1', kind: 'ConfigMap', metadata: [name: 'made'], data: [a: readYaml(text: 'b: [c, d]').b[1]]]
      openshift.withCluster() { echo "created ${openshift.create('-f', 'object.yaml').names()}" }
      stash name: 'files', includes: 'a,b'
    }
  }
}
node('tools') {
  stage('Label') {
    sh 'test ! -e a'
    unstash 'files'
    sh 'cat a b'
    git url: 'URL', branch: 'main'
    sh 'cat file'
  }
}`

const agentOfDirective = `pipeline {
  agent none
  stages {
    stage('Pod') {
      agent {
        kubernetes {
          yaml '''
            kind: Pod
            spec:
              containers:
              - name: tools
                image: IMAGE
                command: [sleep]
                args: [infinity]
          '''
          defaultContainer 'tools'
        }
      }
      steps {
        sh 'cat file /etc/hostname'
        timeout(time: 30, unit: 'MINUTES') { sh 'echo waits; sleep 3600' }
      }
    }
  }
}`

func TestPipelineRunsStepsInAgents(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	image := p.OC("get", "istag/pipeline-runner:latest", "-n", "openshift", "-o", "jsonpath={.image.dockerImageReference}")
	p.OC("tag", "openshift/pipeline-runner:latest", "tools:latest")
	p.OC("label", "is/tools", "role=jenkins-agent")
	p.OC("create", "secret", "generic", "words", "--from-literal=secrettext=other-word")
	p.OC("create", "secret", "generic", "notes", "--from-literal=filename=third-word")
	p.OC("label", "secret", "words", "notes", "credential.sync.jenkins.openshift.io=true")
	p.OC("create", "serviceaccount", "pipeline")
	p.OC("policy", "add-role-to-user", "edit", "-z", "pipeline")
	url, _ := p.repository(map[string]string{"file": "content of the file\n", "Jenkinsfile": strings.ReplaceAll(agentOfDirective, "IMAGE", image)})
	p.pipeline("app", strings.NewReplacer("IMAGE", image, "URL", url+"/.git").Replace(agents), "serviceAccount: pipeline, triggers: []")
	log, err := p.TryOC("start-build", "app", "--follow", "--wait")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for _, want := range []string{
		"tools has first\n", "outside no tools\n", "status 3, output second\n", "<one\ntwo \\n>\n", "SECRET OTHER-WORD, THIRD-WORD\n", "created [configmap/made]\n", "firstsecond\n", "content of the file\n",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "other-word") || strings.Contains(log, "third-word") {
		t.Error("the log shows a secret")
	}
	if got := p.OC("get", "configmap/made", "-o", "jsonpath={.data.a}"); got != "d" {
		t.Errorf("the object of the file has the value %q", got)
	}
	// Agent pods are deleted when their block ends. Build pods remain.
	waitUntilAgentsEnd := func() {
		p.WaitFor("the end of the agents", func(context.Context) error {
			if got := p.OC("get", "pods", "-o", "name"); strings.Contains(got, "-agent-") {
				return fmt.Errorf("pods: %s", got)
			}
			return nil
		})
	}
	waitUntilAgentsEnd()
	// Canceling a build must also stop its agent.
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: long}, spec: {serviceAccount: pipeline, source: {git: {uri: %q, ref: main}},
		strategy: {jenkinsPipelineStrategy: {}}}}`, url+"/.git"))
	p.OC("start-build", "long")
	for _, want := range []string{"\ncontent of the file\n", "\nlong-1-agent-", "\nwaits\n"} {
		p.waitLog("long-1", want)
	}
	p.OC("cancel-build", "long-1")
	p.waitOutput("build/long-1", "{.status.phase}", "Cancelled")
	waitUntilAgentsEnd()
	// The pipelines must fail: the default service account for builds is not allowed to create
	// pods, and no agent has the unknown label.
	p.pipeline("refused", "node('tools') { }", "triggers: []")
	p.pipeline("unknown", "node('none') { }", "serviceAccount: pipeline, triggers: []")
	for name, want := range map[string]string{"refused": "forbidden", "unknown": `no agent has the label "none"`} {
		if log, err := p.TryOC("start-build", name, "--follow", "--wait"); err == nil || !strings.Contains(log, want) {
			t.Errorf("%s: %v\n%s", name, err, log)
		}
	}
}

// Without a podTemplate, the label "maven" selects the Java builder image. The image's Maven can
// build a program without dependencies even if there is no network.
func TestPipelineRunsMavenInBuilderImage(t *testing.T) {
	if os.Getenv("SLIPWAY_TEST_SAMPLES") == "" { // set by `make samples`
		return
	}
	p := newProject(t)
	p.publishRunner()
	p.BuildSample("java", "")
	p.OC("create", "serviceaccount", "pipeline")
	p.OC("policy", "add-role-to-user", "edit", "-z", "pipeline")
	url, _ := p.repository(map[string]string{
		"pom.xml": `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>app</groupId><artifactId>app</artifactId>
			<version>1</version><properties><maven.compiler.release>17</maven.compiler.release></properties><build><finalName>app</finalName></build></project>`,
		"src/main/java/App.java": `public class App { public static void main(String[] arguments) { System.out.println("hello " + "from the agent"); } }`,
	})
	p.pipeline("app", "node('maven') { git url: '"+url+"/.git', branch: 'main'; sh 'mvn --batch-mode package && java -cp target/app.jar App' }",
		"serviceAccount: pipeline, triggers: []")
	if log, err := p.TryOC("start-build", "app", "--follow", "--wait"); err != nil || !strings.Contains(log, "\nhello from the agent\n") {
		t.Errorf("%v\n%s", err, log)
	}
}

// forms is a pipeline that contains the most common constructs of Jenkinsfiles.
const forms = `
def image
@NonCPS
def shout(text) { text.toUpperCase() }
pipeline {
  agent any
  triggers { cron('H 4 * * *') }
  tools { maven 'M3' }
  options { buildDiscarder(logRotator(numToKeepStr: '5')); timestamps(); disableConcurrentBuilds(); timeout(time: 10, unit: 'MINUTES') }
  parameters {
    choice(name: 'TARGET', choices: ['test', 'production'], description: 'Where to deploy')
    booleanParam(name: 'FAST', defaultValue: true, description: '')
  }
  environment { VERSION = "1.0.${env.BUILD_NUMBER}" }
  stages {
    stage('Build') {
      steps {
        sh '''
          mkdir -p target
          echo "$VERSION" >target/version
        '''
        script {
          image = "app:${sh(script: 'cat target/version', returnStdout: true).trim()}"
          currentBuild.displayName = "#${env.BUILD_NUMBER} ${params.TARGET}"
        }
      }
      post { success { archiveArtifacts artifacts: 'target/*', fingerprint: true } }
    }
    stage('Test') {
      when { expression { return params.FAST } }
      parallel {
        stage('Unit') { steps { retry(2) { sh 'if test ! -e tried; then touch tried; exit 1; fi; echo "unit tests of $VERSION"' } } }
        stage('First') { steps { lock('disk') { sh 'mkdir busy; sleep 1; rmdir busy' } } }
        stage('Second') { steps { lock(resource: 'disk') { sh 'mkdir busy; sleep 1; rmdir busy' } } }
        stage('Style') { steps { catchError(buildResult: 'SUCCESS', stageResult: 'UNSTABLE') { error 'bad style' } } }
      }
    }
    stage('Ask') {
      input {
        message 'Deploy?'
        id 'deploy'
        parameters { string(name: 'REASON', defaultValue: 'none', description: 'Why') }
      }
      steps { echo "deploy because of ${REASON}" }
    }
    stage('Deploy') {
      when { anyOf { environment name: 'TARGET', value: 'test'; branch 'main' } }
      steps {
        script {
          try {
            def answer = input(message: 'Which?', id: 'which', parameters: [choice(name: 'COLOR', choices: 'blue\ngreen'), booleanParam(name: 'NOW', defaultValue: false)])
            echo "${shout(image)} ${answer.COLOR} ${answer.NOW}"
            def config = readJSON text: '{"hosts": ["a", "b"]}'
            config.hosts.each { host -> echo "host ${host}" }
            sh "${tool 'git'}/bin/git --version"
            timeout(time: 1, unit: 'SECONDS') { sh 'sleep 600' }
          } catch (e) {
            echo "caught: ${e.message}"
          } finally {
            echo 'finally'
          }
        }
      }
    }
    stage('Never') { when { not { equals expected: 'test', actual: params.TARGET } }; steps { error 'not reached' } }
  }
  post {
    always { cleanWs() }
    success { echo "ended as ${currentBuild.currentResult}" }
    failure { echo 'failed' }
  }
}`

func TestPipelineRunsUsedForms(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	p.pipeline("app", forms, "triggers: []")
	p.OC("start-build", "app")
	pending := func(want string) {
		t.Helper()
		p.waitOutput("build/app-1", `{.metadata.annotations.openshift\.io/jenkins-pending-input-actions-json}`, want)
	}
	pending(`[{"id":"deploy","proceedText":"Proceed","message":"Deploy?","inputs":[{"type":"StringParameterDefinition","name":"REASON","description":"Why","definition":{"defaultVal":"none"}}],` +
		`"proceedUrl":"","abortUrl":"","redirectApprovalUrl":""}]`)
	p.OC("annotate", "build/app-1", `pipeline.slipway.io/input-deploy={"REASON": "it is time"}`)
	p.waitLog("app-1", "deploy because of it is time\n")
	const which = "pipeline.slipway.io/input-which"
	p.OC("annotate", "build/app-1", which+`={"COLOR": "red"}`)
	p.waitLog("app-1", `the parameter COLOR has the value "red"`)
	p.OC("annotate", "build/app-1", which+`={"COLOR": "green", "NOW": true}`, "--overwrite")
	p.waitOutput("build/app-1", "{.status.phase}", "Complete")
	log := p.OC("logs", "build/app-1")
	for _, want := range []string{"unit tests of 1.0.1\n", "ERROR: bad style\n", "APP:1.0.1 green true\n", "host b\n", "git version ", "caught: Timeout has been exceeded", "finally\n", "ended as SUCCESS\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if got, want := strings.Join(p.stages("app-1"), ", "), "Ask SUCCESS, Deploy SUCCESS, Never NOT_EXECUTED"; !strings.HasSuffix(got, want) || !strings.Contains(got, "Style UNSTABLE") {
		t.Errorf("the stages are %s", got)
	}
	p.pipeline("unknown", "node { slackSend 'hello' }", "triggers: []")
	if log, err := p.TryOC("start-build", "unknown", "--follow", "--wait"); err == nil || !strings.Contains(log, "no such DSL method 'slackSend'") || !strings.Contains(log, "docs/admin/pipelines.md") {
		t.Errorf("%v: the log is\n%s", err, log)
	}
}
