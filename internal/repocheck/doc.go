// Package repocheck checks the rules of the repository in tests: which folder can import which, the
// form of packages, files and comments, and what the tree must not contain. The vocabulary of
// folders is the table in layers_test.go. A failure names the file, the rule and the remedy.
//
// The tests parse source files and compile nothing, so they need only seconds in a clean clone.
package repocheck
