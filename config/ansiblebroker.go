package config

import (
	"net/url"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ansibleBroker validates the Ansible service broker's settings.
func (c *checker) ansibleBroker(s *AnsibleServiceBrokerConfig) {
	const key = "ansibleServiceBrokerConfig"
	c.projects(key+".namespaces", s.Namespaces)
	c.bundleLists(key, s.WhiteList, s.BlackList)
	for i, secret := range s.Secrets {
		c.required(indexed(key+".secrets", i)+".secret", secret.Secret)
		c.required(indexed(key+".secrets", i)+".apbName", secret.ApbName)
	}
	names := map[string]bool{}
	for i := range s.Registries {
		at, r := indexed(key+".registries", i), &s.Registries[i]
		if len(validation.IsDNS1123Label(r.Name)) > 0 || names[r.Name] {
			c.fail(at+".name", "is %q, must be a unique DNS label", r.Name)
		}
		names[r.Name] = true
		c.bundleLists(at, r.WhiteList, r.BlackList)
		c.ansibleRegistry(at, r)
	}
}

// ansibleRegistry validates the settings that depend on a registry's type.
func (c *checker) ansibleRegistry(at string, r *AnsibleBrokerRegistry) {
	switch r.Type {
	case "local_openshift":
		c.projects(at+".namespaces", r.Namespaces)
		if len(r.Namespaces) == 0 {
			c.fail(at+".namespaces", "is missing; name the projects with bundles")
		}
		return
	case "dockerhub":
		c.required(at+".org", r.Org)
	case "openshift":
		if len(r.Images) == 0 {
			c.fail(at+".images", "is missing; name the images, such as team/db-apb")
		}
	default:
		c.fail(at+".type", "is %q, must be openshift, dockerhub or local_openshift", r.Type)
		return
	}
	if address, err := url.Parse(r.URL); err != nil || address.Scheme != "https" || address.Host == "" || address.Path != "" {
		c.fail(at+".url", "is %q, must be an address such as https://registry.example.com:5000", r.URL)
	}
}

// projects validates the names of projects.
func (c *checker) projects(at string, names []string) {
	for i, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			c.fail(indexed(at, i), "is %q, must be the name of a project", name)
		}
	}
}

// bundleLists validates the white list and the black list of names.
func (c *checker) bundleLists(at string, whiteList, blackList []string) {
	for key, patterns := range map[string][]string{"whiteList": whiteList, "blackList": blackList} {
		for i, pattern := range patterns {
			if _, err := regexp.Compile(pattern); err != nil {
				c.fail(indexed(at+"."+key, i), "is %q, must be a regular expression: %v", pattern, err)
			}
		}
	}
}
