package policy

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Problem describes an invalid value in a Policy.
type Problem struct {
	// Key is the path of the invalid value, such as `predicates[0].name`.
	Key string
	// Text describes the problem and how to fix it.
	Text string
}

// checker collects problems.
type checker struct{ problems []Problem }

func (c *checker) fail(key, format string, args ...any) {
	c.problems = append(c.problems, Problem{key, fmt.Sprintf(format, args...)})
}

// Check returns the problems in a Policy.
func (p *Policy) Check() []Problem {
	c := &checker{}
	for _, version := range []struct{ key, value string }{{"apiVersion", p.APIVersion}, {"version", p.Version}} {
		if version.value != "" && version.value != "v1" {
			c.fail(version.key, "is %q, must be v1", version.value)
		}
	}
	names := map[string]bool{}
	for i, predicate := range p.Predicates {
		c.predicate(fmt.Sprintf("predicates[%d]", i), predicate, names)
	}
	names = map[string]bool{}
	for i, priority := range p.Priorities {
		c.priority(fmt.Sprintf("priorities[%d]", i), priority, names)
	}
	c.extenders(p.Extenders)
	if weight := p.HardPodAffinitySymmetricWeight; weight < 0 || weight > 100 {
		c.fail("hardPodAffinitySymmetricWeight", "is %d, must be from 1 to 100", weight)
	}
	return c.problems
}

func (c *checker) predicate(key string, p Predicate, names map[string]bool) {
	c.name(key, p.Name, names, "predicate", p.Argument != nil, PredicateNames())
	if p.Argument == nil {
		return
	}
	affinity, presence := p.Argument.ServiceAffinity, p.Argument.LabelsPresence
	switch key += ".argument"; {
	case (affinity == nil) == (presence == nil):
		c.fail(key, "must have one of serviceAffinity and labelsPresence")
	case affinity != nil:
		c.labels(key+".serviceAffinity.labels", affinity.Labels)
	default:
		c.labels(key+".labelsPresence.labels", presence.Labels)
	}
}

func (c *checker) priority(key string, p Priority, names map[string]bool) {
	c.name(key, p.Name, names, "priority", p.Argument != nil, PriorityNames())
	c.weight(key+".weight", p.Weight)
	if p.Argument == nil {
		return
	}
	spread, preference := p.Argument.ServiceAntiAffinity, p.Argument.LabelPreference
	switch key += ".argument"; {
	case (spread == nil) == (preference == nil):
		c.fail(key, "must have one of serviceAntiAffinity and labelPreference")
	case spread != nil:
		c.label(key+".serviceAntiAffinity.label", string(spread.Label))
	default:
		c.label(key+".labelPreference.label", preference.Label)
	}
}

// name checks a rule's name. A rule without an argument must have a name that OpenShift defines.
func (c *checker) name(key, name string, names map[string]bool, kind string, configured bool, known []string) {
	switch key += ".name"; {
	case name == "":
		c.fail(key, "is missing; give the %s a name", kind)
	case names[name]:
		c.fail(key, "is %q, which an earlier %s already has; choose another name", name, kind)
	case !configured && !slices.Contains(known, name):
		c.fail(key, "is %q, which is not a known %s; use one of %s, or add an argument", name, kind, strings.Join(known, ", "))
	}
	names[name] = true
}

func (c *checker) weight(key string, weight int64) {
	if weight <= 0 || weight > math.MaxInt32/100 {
		c.fail(key, "is %d, must be a number from 1 to %d", weight, math.MaxInt32/100)
	}
}

func (c *checker) labels(key string, labels []string) {
	if len(labels) == 0 {
		c.fail(key, "is empty; name the labels of nodes")
	}
	for i, label := range labels {
		c.label(fmt.Sprintf("%s[%d]", key, i), label)
	}
}

func (c *checker) label(key, label string) {
	if problems := validation.IsQualifiedName(label); len(problems) > 0 {
		c.fail(key, "is %q, must be the key of a label: %s", label, problems[0])
	}
}

func (c *checker) extenders(extenders []Extender) {
	binders := 0
	for i, extender := range extenders {
		key := fmt.Sprintf("extenders[%d]", i)
		if u, err := url.Parse(extender.URLPrefix); err != nil || u.Host == "" {
			c.fail(key+".urlPrefix", "is %q, must be a URL such as https://extender.example.com/scheduler", extender.URLPrefix)
		}
		if extender.PrioritizeVerb != "" {
			c.weight(key+".weight", extender.Weight)
		}
		if extender.BindVerb != "" {
			if binders++; binders > 1 {
				c.fail(key+".bindVerb", "is set a second time; only one extender can bind pods")
			}
		}
		if extender.HTTPTimeout < 0 {
			c.fail(key+".httpTimeout", "is %d, must be a number of nanoseconds", extender.HTTPTimeout)
		}
	}
}
