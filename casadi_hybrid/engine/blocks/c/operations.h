/* Written by operations.py, `cases`: a test holds the two together. */
case 0:
    for (i = 0; i < width; i++) z[i] = fmin(x[i], y[i]);
    break;
case 1:
    for (i = 0; i < width; i++) z[i] = y[i] < x[i] || x[i] != x[i] ? y[i] : x[i];
    break;
case 2:
    for (i = 0; i < width; i++) z[i] = x[i] < y[i] || y[i] != y[i] ? x[i] : y[i];
    break;
case 3:
    for (i = 0; i < width; i++) z[i] = fmax(x[i], y[i]);
    break;
case 4:
    for (i = 0; i < width; i++) z[i] = y[i] > x[i] || x[i] != x[i] ? y[i] : x[i];
    break;
case 5:
    for (i = 0; i < width; i++) z[i] = x[i] > y[i] || y[i] != y[i] ? x[i] : y[i];
    break;
case 6:
    for (i = 0; i < width; i++) z[i] = x[i];
    break;
case 7:
    for (i = 0; i < width; i++) z[i] = x[i];
    break;
case 8:
    for (i = 0; i < width; i++) z[i] = -x[i];
    break;
case 9:
    for (i = 0; i < width; i++) z[i] = x[i] * x[i];
    break;
case 10:
    for (i = 0; i < width; i++) z[i] = 2.0 * x[i];
    break;
case 11:
    for (i = 0; i < width; i++) z[i] = 1.0 / x[i];
    break;
case 12:
    for (i = 0; i < width; i++) z[i] = (double)!x[i];
    break;
case 13:
    for (i = 0; i < width; i++) z[i] = pow(x[i], y[i]);
    break;
case 14:
    for (i = 0; i < width; i++) z[i] = x[i] < 0 ? -1.0 : x[i] > 0 ? 1.0 : x[i];
    break;
case 15:
    for (i = 0; i < width; i++) z[i] = x[i] == 0 ? 0.0 : y[i];
    break;
case 16:
    for (i = 0; i < width; i++) z[i] = x[i] + y[i];
    break;
case 17:
    for (i = 0; i < width; i++) z[i] = x[i] - y[i];
    break;
case 18:
    for (i = 0; i < width; i++) z[i] = x[i] * y[i];
    break;
case 19:
    for (i = 0; i < width; i++) z[i] = x[i] / y[i];
    break;
case 20:
    for (i = 0; i < width; i++) z[i] = (double)(x[i] < y[i]);
    break;
case 21:
    for (i = 0; i < width; i++) z[i] = (double)(x[i] <= y[i]);
    break;
case 22:
    for (i = 0; i < width; i++) z[i] = (double)(x[i] == y[i]);
    break;
case 23:
    for (i = 0; i < width; i++) z[i] = (double)(x[i] != y[i]);
    break;
case 24:
    for (i = 0; i < width; i++) z[i] = (double)(x[i] && y[i]);
    break;
case 25:
    for (i = 0; i < width; i++) z[i] = (double)(x[i] || y[i]);
    break;
case 26:
    for (i = 0; i < width; i++) z[i] = exp(x[i]);
    break;
case 27:
    for (i = 0; i < width; i++) z[i] = log(x[i]);
    break;
case 28:
    for (i = 0; i < width; i++) z[i] = sqrt(x[i]);
    break;
case 29:
    for (i = 0; i < width; i++) z[i] = sin(x[i]);
    break;
case 30:
    for (i = 0; i < width; i++) z[i] = cos(x[i]);
    break;
case 31:
    for (i = 0; i < width; i++) z[i] = tan(x[i]);
    break;
case 32:
    for (i = 0; i < width; i++) z[i] = asin(x[i]);
    break;
case 33:
    for (i = 0; i < width; i++) z[i] = acos(x[i]);
    break;
case 34:
    for (i = 0; i < width; i++) z[i] = atan(x[i]);
    break;
case 35:
    for (i = 0; i < width; i++) z[i] = floor(x[i]);
    break;
case 36:
    for (i = 0; i < width; i++) z[i] = ceil(x[i]);
    break;
case 37:
    for (i = 0; i < width; i++) z[i] = fabs(x[i]);
    break;
case 38:
    for (i = 0; i < width; i++) z[i] = erf(x[i]);
    break;
case 39:
    for (i = 0; i < width; i++) z[i] = sinh(x[i]);
    break;
case 40:
    for (i = 0; i < width; i++) z[i] = cosh(x[i]);
    break;
case 41:
    for (i = 0; i < width; i++) z[i] = tanh(x[i]);
    break;
case 42:
    for (i = 0; i < width; i++) z[i] = asinh(x[i]);
    break;
case 43:
    for (i = 0; i < width; i++) z[i] = acosh(x[i]);
    break;
case 44:
    for (i = 0; i < width; i++) z[i] = atanh(x[i]);
    break;
case 45:
    for (i = 0; i < width; i++) z[i] = log1p(x[i]);
    break;
case 46:
    for (i = 0; i < width; i++) z[i] = expm1(x[i]);
    break;
case 47:
    for (i = 0; i < width; i++) z[i] = pow(x[i], y[i]);
    break;
case 48:
    for (i = 0; i < width; i++) z[i] = fmod(x[i], y[i]);
    break;
case 49:
    for (i = 0; i < width; i++) z[i] = remainder(x[i], y[i]);
    break;
case 50:
    for (i = 0; i < width; i++) z[i] = copysign(x[i], y[i]);
    break;
case 51:
    for (i = 0; i < width; i++) z[i] = atan2(x[i], y[i]);
    break;
case 52:
    for (i = 0; i < width; i++) z[i] = hypot(x[i], y[i]);
    break;
