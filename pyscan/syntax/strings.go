package syntax

func (c Context) String() string { return [...]string{"Load", "Store", "Del"}[c] }

func (o Operator) String() string {
	return [...]string{"Add", "Sub", "Mult", "MatMult", "Div", "Mod", "Pow", "LShift", "RShift", "BitOr", "BitXor", "BitAnd", "FloorDiv"}[o]
}

func (o UnaryOperator) String() string { return [...]string{"Invert", "Not", "UAdd", "USub"}[o] }

func (o BoolOperator) String() string { return [...]string{"And", "Or"}[o] }

func (o CompareOperator) String() string {
	return [...]string{"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In", "NotIn"}[o]
}

func (k TypeParamKind) String() string { return [...]string{"TypeVar", "ParamSpec", "TypeVarTuple"}[k] }

func (k CompKind) String() string {
	return [...]string{"ListComp", "SetComp", "DictComp", "GeneratorExp"}[k]
}
