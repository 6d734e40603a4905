package pipeline

/** A parameter of a pipeline or of an input. */
class Parameter {
    final String name, description
    final Object defaultValue
    final List choices

    Parameter(Map options, Object defaultValue, List choices = null) {
        name = options.name
        description = options.description ?: ''
        this.defaultValue = defaultValue
        this.choices = choices
    }

    /** Sets the parameter of a run: to the variable of the build with its name, or to its default. */
    void apply(Run run) {
        def value = valueOf(run.env[name])
        run.params[name] = value
        run.env[name] = value.toString()
    }

    /** Returns the value for a given one, or the default if there is none. */
    Object valueOf(Object given) {
        if (given == null) return defaultValue
        if (choices && !choices*.toString().contains(given.toString())) throw new Failure("the parameter $name has the value \"$given\", want one of $choices")
        defaultValue instanceof Boolean ? given.toString().toBoolean() : given.toString()
    }

    /** Returns the definition as Jenkins' REST API describes it. */
    Map json() {
        String type = choices ? 'Choice' : defaultValue instanceof Boolean ? 'Boolean' : 'String'
        [type: type + 'ParameterDefinition', name: name, description: description, definition: [defaultVal: defaultValue] + (choices ? [choices: choices] : [:])]
    }
}
